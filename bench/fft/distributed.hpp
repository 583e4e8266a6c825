// The transform of a grid that is divided over the ranks: lines along the axis that is whole, a
// transpose, lines along the next axis, and so on. An axis that no dimension of the grid of ranks
// divides needs no transpose.
#pragma once

#include <array>
#include <memory>
#include <string>

#include "fft/grid.hpp"
#include "fft/lines.hpp"
#include "fft/transposes.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::bench {

struct FftCase {
  Triple cells{};  // numbers of the grid
  std::array<int, 2> ranks{1, 1};
  bool is_real = false;
};

// What all ways of a case share: this rank's place, and the ranks of each dimension of their grid.
class FftRanks {
 public:
  FftRanks(Communicator all, const FftCase& one);  // collective

  // Of the coefficients; those of real numbers are half as many along axis 2.
  const DividedGrid& grid() const noexcept { return grid_; }
  Communicator of(int dimension) const {
    return (dimension == 0 ? first_ : second_).communicator();
  }

 private:
  DividedGrid grid_;
  SplitCommunicator first_;
  SplitCommunicator second_;
};

// Microseconds since they were last reset.
struct FftShares {
  double transposes = 0;
  double local = 0;
};

class DistributedFft {
 public:
  // Collective.
  DistributedFft(const std::string& way, const FftCase& one, const FftRanks& ranks,
                 const LineLibrary& library, ThreadTeam& team);

  // With axis 2 whole. Complex numbers, or real ones.
  Complex* values() const noexcept { return arrays_[2]; }
  double* real_values() const noexcept { return real_.data(); }
  Complex* coefficients() const noexcept { return arrays_[0]; }  // with axis 0 whole

  // Collective. backward() ruins the coefficients.
  void forward();
  void backward();

  void reset_shares() noexcept { shares_ = {}; }
  const FftShares& shares() const noexcept { return shares_; }

 private:
  static std::unique_ptr<FftTranspose> transpose(const std::string& way, const FftRanks& ranks,
                                                 int from_axis, int to_axis);
  template <class Work>
  void timed(double& share, const Work& work);

  FftShares shares_;
  std::array<std::unique_ptr<FftTranspose>, 2> forward_;   // to the whole axes 1 and 0
  std::array<std::unique_ptr<FftTranspose>, 2> backward_;  // to the whole axes 1 and 2
  Buffer<Complex> alone_;                                  // where nothing is transposed
  Buffer<double> real_;
  std::array<Complex*, 3> arrays_{};  // in which lines along each axis are transformed forward
  std::array<std::unique_ptr<AxisTransform>, 3> lines_;
  std::unique_ptr<RealTransform> real_lines_;  // instead of the lines along axis 2
};

}  // namespace ropewalk::bench
