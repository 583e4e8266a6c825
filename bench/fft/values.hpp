// What the grid holds, so that every rank knows what must come out: a plane wave, whose transform
// is known, and random numbers, for a comparison with a transform that is not divided.
#pragma once

#include <array>
#include <cstdint>
#include <string>
#include <vector>

#include "fft/distributed.hpp"

namespace ropewalk::bench {

// exp(2 pi i k.r / n), or its real part; the wave numbers k follow from the serial number.
class PlaneWave {
 public:
  PlaneWave(const FftCase& one, std::uint64_t serial);

  void fill(const DividedGrid& grid, const DistributedFft& fft) const;
  // Empty where the values, or the coefficients, are those of the wave, but for rounding; else what
  // is wrong.
  std::string check_values(const DividedGrid& grid, const DistributedFft& fft) const;
  std::string check_coefficients(const DividedGrid& grid, const DistributedFft& fft) const;

 private:
  Complex value(const Triple& at) const;
  Complex coefficient(const Triple& at) const;

  FftCase case_;
  Triple numbers_{};
  std::array<std::vector<Complex>, 3> phases_;  // along each axis
};

// Grids of up to so many cells are compared with a serial transform: 32 MiB on each rank.
inline constexpr std::size_t most_serial_cells = std::size_t{1} << 21;

// The coefficients of random numbers, by KissFFT of the whole grid on this rank alone.
class SerialTransform {
 public:
  SerialTransform(const FftCase& one, ThreadTeam& team);

  void fill(const DividedGrid& grid, const DistributedFft& fft) const;
  std::string check(const DividedGrid& grid, const DistributedFft& fft) const;

 private:
  FftCase case_;
  std::vector<Complex> coefficients_;
};

}  // namespace ropewalk::bench
