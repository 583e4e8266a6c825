// Numbers that a seed decides: the same on every rank, under every MPI.
#pragma once

#include <cstddef>
#include <cstdint>

namespace mixed {

// Returns the finisher of SplitMix64.
inline std::uint64_t mix(std::uint64_t x) {
  x += 0x9e3779b97f4a7c15u;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
  return x ^ (x >> 31);
}

class Random {
 public:
  explicit Random(std::uint64_t seed) : state_(mix(seed)) {}
  std::uint64_t next() { return mix(state_ += 0x9e3779b97f4a7c15u); }
  // 0 to n - 1; 0 where there is none.
  std::size_t below(std::size_t n) { return n == 0 ? 0 : next() % n; }
  std::size_t between(std::size_t least, std::size_t most) {
    return least + below(most - least + 1);
  }
  bool chance(int percent) { return below(100) < static_cast<std::size_t>(percent); }
  double real() { return static_cast<double>(next() >> 11) * 0x1p-53; }

 private:
  std::uint64_t state_;
};

}  // namespace mixed
