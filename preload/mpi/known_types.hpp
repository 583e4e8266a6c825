// This file remembers what small one-sided operations need of MPI's own datatypes and operations.
// One look at a table finds it: no record of a type is copied or counted.
//
// MPI's own handles last as long as MPI, so that what is written once stays. Where two handles want
// one place, the second is looked up elsewhere at every call.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>

#include "accumulation.hpp"
#include "functions.hpp"
#include "kernels/kernels.hpp"

namespace ropewalk::preload::onesided {

struct KnownType {
  std::atomic<Word> handle{0};  // stored last
  std::size_t bytes = 0;        // of an element
};

// Does to elements what an accumulate does; `before`, which may be null, gets what they were. For
// few elements that takes less time than the call of a kernel.
using ApplyToFew = void (*)(std::byte* elements, const std::byte* operands, std::byte* before,
                            std::size_t count);
// Doubles of 8 B took 19 ns this way; those of 256 B took 40, and 27 by a kernel (a Xeon).
inline constexpr std::size_t few_bytes = 64;

struct KnownAccumulation {
  std::atomic<Word> type{0};  // stored last
  Word op = 0;
  ApplyToFew few = nullptr;                  // null where there is no shorter way than apply()
  kernels::ReduceFunction kernel = nullptr;  // what apply() comes to; null where it is more
  const Accumulation* all = nullptr;         // never freed
};

namespace known {

// A program uses a few of some 60 types, and of some 500 pairs.
inline constexpr unsigned bits = 8;
template <class Entry>
using Table = std::array<Entry, std::size_t{1} << bits>;

extern Table<KnownType> types;
extern Table<KnownAccumulation> accumulations;

// Fibonacci hashing, as in handle_table.hpp.
inline std::size_t place_of(Word key) noexcept {
  return static_cast<std::size_t>((key * 0x9e3779b97f4a7c15ULL) >> (64 - bits));
}
inline std::size_t place_of(Word type, Word op) noexcept { return place_of(type + op * 7919); }

std::size_t bytes_slowly(Word type) noexcept;
const KnownAccumulation* accumulation_slowly(Word type, Word op);

}  // namespace known

// Returns the bytes of an element of one of MPI's own types, whose bytes lie side by side; 0 for
// any other.
inline std::size_t known_bytes(Word type) noexcept {
  const KnownType& found = known::types[known::place_of(type)];
  // Acquire pairs with the release of who has filled the place.
  if (found.handle.load(std::memory_order_acquire) == type) [[likely]] {
    return found.bytes;
  }
  return known::bytes_slowly(type);
}

// Returns null for a type that is not such a one, and where MPI must judge the pair.
inline const KnownAccumulation* known_accumulation(Word type, Word op) {
  const KnownAccumulation& found = known::accumulations[known::place_of(type, op)];
  // Acquire pairs with the release of who has filled the place.
  if (found.type.load(std::memory_order_acquire) == type && found.op == op) [[likely]] {
    return &found;
  }
  return known::accumulation_slowly(type, op);
}

}  // namespace ropewalk::preload::onesided
