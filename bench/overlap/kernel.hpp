// A loop body of the cost of the Wilson-clover hopping matrix (MULT of CCS-QCD): per site 8 links
// times half spinors, then two Hermitian 6x6 blocks; 1896 flops in CCS-QCD's count, single
// precision. What it computes is checked against itself only; lattice/ has the real operators.
#pragma once

#include <cstddef>

#include "ropewalk/memory.hpp"

namespace ropewalk::bench {

constexpr double flops_a_site = 1896;
constexpr std::size_t lanes_a_vector = 16;  // sites that are computed together

// Vectors of sites in a row that closes on itself; neighbours are at distances like those of a
// four-dimensional lattice.
class Mult {
 public:
  explicit Mult(std::size_t vectors);

  std::size_t vectors() const noexcept { return vectors_; }
  double sites() const noexcept { return static_cast<double>(vectors_ * lanes_a_vector); }
  std::size_t bytes() const noexcept;
  void compute(std::size_t begin, std::size_t end) noexcept;  // vectors

  // Ruins the results; then whether all are again as the first time they were complete.
  void clear() noexcept;
  bool right();

 private:
  std::size_t vectors_;
  std::size_t step_[4];
  Buffer<float> in_;
  Buffer<float> links_;
  Buffer<float> clover_;
  Buffer<float> out_;
  double expected_ = 0;
  bool known_ = false;
};

}  // namespace ropewalk::bench
