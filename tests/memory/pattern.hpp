// Contents that tell whose memory it is.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ropewalk::test {

inline std::uint64_t pattern_word(std::uint64_t seed, std::size_t index) {
  std::uint64_t x = (seed + 1) * 0x9E3779B97F4A7C15U + index;
  x ^= x >> 29;
  return x * 0xBF58476D1CE4E5B9U;
}

// One word in 64 bytes, and the last byte: enough to catch overlap, cheap under a sanitizer.
inline void fill(void* data, std::size_t bytes, std::uint64_t seed) {
  auto* at = static_cast<unsigned char*>(data);
  for (std::size_t i = 0; i < bytes; i += 64)
    at[i] = static_cast<unsigned char>(pattern_word(seed, i));
  if (bytes > 0) at[bytes - 1] = static_cast<unsigned char>(pattern_word(seed, bytes - 1));
}

inline bool holds(const void* data, std::size_t bytes, std::uint64_t seed) {
  const auto* at = static_cast<const unsigned char*>(data);
  for (std::size_t i = 0; i + 1 < bytes; i += 64) {
    if (at[i] != static_cast<unsigned char>(pattern_word(seed, i))) return false;
  }
  return bytes == 0 || at[bytes - 1] == static_cast<unsigned char>(pattern_word(seed, bytes - 1));
}

}  // namespace ropewalk::test
