// The search finds the fastest value of a threshold from times that its caller measures. It is
// arithmetic alone, so that a test can check it with times of its own.
//
// Machines are noisy. Ways are therefore compared round by round, by the median of their ratios,
// and the default stays unless another value saves more than the noise, and more than 3 %.
#pragma once

#include <cstddef>
#include <functional>
#include <vector>

namespace ropewalk::bench {

// Times are the microseconds of a call, as [way][round]. The times of one round were measured right
// after each other.
using Times = std::vector<std::vector<double>>;
// A Measure returns what is measured for one size: the times of each case. Several collectives that
// ask the same threshold are several cases.
using Measure = std::function<std::vector<Times>(std::size_t bytes)>;

// SizeFound is what was found for one size. `ratio` has for each way its time over that of the
// first way, as the geometric mean over the cases.
struct SizeFound {
  std::size_t bytes = 0;
  std::vector<std::vector<double>> us;  // medians: [case][way]
  std::vector<double> ratio;
  std::vector<double> noise;  // of the logarithm of `ratio`, for each way: 0.01 is 1 %
};

struct Finding {
  std::size_t value = 0;
  // `gain` is the share of the time that `value` saves against the default, on average over the
  // sizes that it changes, and `noise` is how far that share may be off. Both are 0 where the
  // default stays.
  double gain = 0;
  double noise = 0;
  std::vector<SizeFound> sizes;  // in the order in which they were measured

  bool changes(std::size_t standard) const { return value != standard; }
};

// The default stays unless more than this share of the time is saved.
inline constexpr double least_gain = 0.03;

// A Border is a threshold between two ways: way 0 is taken below it, way 1 above.
struct Border {
  std::size_t standard = 0;  // the default
  std::size_t least = 0;
  std::size_t most = 0;
  bool from_on = false;            // way 1 is taken at the threshold itself, otherwise way 0
  std::vector<std::size_t> sizes;  // to measure first; ascending
};
// Returns the best border. It is searched among the sizes first, and the interval between the two
// sizes beside it is then halved twice. The border lies no farther out than the sizes reach: at
// half the first one, or at twice the last one.
Finding find_border(const Border&, const Measure&);

// Returns the fastest of several values. Way i is values[i], and values[0] is the default.
Finding find_value(const std::vector<std::size_t>& values, const std::vector<std::size_t>& sizes,
                   const Measure&);

// Returns sizes a factor of two apart, within the bounds: `down` of them below `first`, then those
// from `first` to the first one that is at least `last`, and `up` of them above that.
std::vector<std::size_t> around(std::size_t first, std::size_t last, int down, int up,
                                std::size_t least, std::size_t most);

}  // namespace ropewalk::bench
