// Test data that tells where it came from: a received face is right only if it came from that rank,
// that direction and that round.
#pragma once

#include <cstddef>
#include <cstdint>

namespace ropewalk::bench {

// Mixes the four into one word; different arguments give different words (splitmix64 of each).
std::uint64_t pattern_key(std::uint64_t rank, std::uint64_t direction, std::uint64_t slot,
                          std::uint64_t serial);

// Any length and alignment; word i is key + i * odd constant, so a shifted copy is wrong too.
void fill_pattern(void* data, std::size_t bytes, std::uint64_t key);
// Offset of the first wrong word, or `bytes` where all is right.
std::size_t check_pattern(const void* data, std::size_t bytes, std::uint64_t key);

}  // namespace ropewalk::bench
