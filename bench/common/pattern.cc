// Writing and checking test data; see pattern.hpp. Both run at memory speed, outside of timing.
#include "common/pattern.hpp"

#include <cstring>

namespace ropewalk::bench {
namespace {

constexpr std::uint64_t step = 0x9e3779b97f4a7c15;  // 2^64 / golden ratio, odd: splitmix64's gamma

std::uint64_t mix(std::uint64_t x) {
  x += step;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9;
  x = (x ^ (x >> 27)) * 0x94d049bb133111eb;
  return x ^ (x >> 31);
}

}  // namespace

std::uint64_t pattern_key(std::uint64_t rank, std::uint64_t direction, std::uint64_t slot,
                          std::uint64_t serial) {
  return mix(mix(mix(mix(rank) ^ direction) ^ slot) ^ serial);
}

void fill_pattern(void* data, std::size_t bytes, std::uint64_t key) {
  auto* to = static_cast<unsigned char*>(data);
  const std::size_t words = bytes / 8;
  for (std::size_t i = 0; i < words; ++i) {
    const std::uint64_t word = key + i * step;
    std::memcpy(to + 8 * i, &word, 8);
  }
  const std::uint64_t last = key + words * step;
  std::memcpy(to + 8 * words, &last, bytes % 8);
}

std::size_t check_pattern(const void* data, std::size_t bytes, std::uint64_t key) {
  const auto* from = static_cast<const unsigned char*>(data);
  const std::size_t words = bytes / 8;
  std::uint64_t wrong = 0;
  std::uint64_t word = 0;
  for (std::size_t i = 0; i < words; ++i) {
    std::memcpy(&word, from + 8 * i, 8);
    wrong |= word ^ (key + i * step);
  }
  const std::uint64_t last = key + words * step;
  if (wrong == 0 && std::memcmp(from + 8 * words, &last, bytes % 8) == 0) return bytes;
  for (std::size_t i = 0; i < words; ++i) {
    std::memcpy(&word, from + 8 * i, 8);
    if (word != key + i * step) return 8 * i;
  }
  return 8 * words;
}

}  // namespace ropewalk::bench
