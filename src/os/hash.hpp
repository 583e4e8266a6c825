// FNV-1a in 64 bits: a number by which ranks see that what they hold differs, without sending all
// of it. Equality is all that is asked of it; against data made to collide it is no help.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace ropewalk::os {

inline constexpr std::uint64_t hash_start = 14695981039346656037U;

constexpr std::uint64_t hash_step(std::uint64_t hash, std::uint64_t unit) noexcept {
  return (hash ^ unit) * 1099511628211U;
}

constexpr std::uint64_t hash(std::string_view bytes, std::uint64_t from = hash_start) noexcept {
  for (const char byte : bytes) from = hash_step(from, static_cast<unsigned char>(byte));
  return from;
}

inline std::uint64_t hash_bytes(const void* data, std::size_t bytes) noexcept {
  return hash(std::string_view(static_cast<const char*>(data), bytes));
}

// Hashes the counts of a call, for its slot. It makes one step for each count and not for each
// byte, since ranks compute it in each call. A step carries upwards only, so the upper half is
// folded onto the lower.
constexpr std::uint32_t hash_counts(const std::size_t* counts, int number) noexcept {
  std::uint64_t all = hash_start;
  for (int i = 0; i < number; ++i) all = hash_step(all, counts[i]);
  return static_cast<std::uint32_t>(all ^ (all >> 32));
}

}  // namespace ropewalk::os
