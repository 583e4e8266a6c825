// The types of all variables that ranks share, and the place where the model test replaces them.
//
// tests/model puts a header of this name before this one. Its types report each load and store,
// with its memory order, to a scheduler that tries every interleaving of the ranks. Here they are
// plain atomics and variables, at no cost.
#pragma once

#include <atomic>
#include <cstdint>

namespace ropewalk::node {

// The model has fewer slots than this, so that few calls go round them.
constexpr std::uint64_t slots_unless_modelled(std::uint64_t slots) noexcept { return slots; }

// It is written by one rank and read by others.
template <class T>
using Flag = std::atomic<T>;

// It is written before a flag is released, and read after that was acquired.
template <class T>
using Plain = T;

// Returns true when the model has waited until `ready()` was true.
template <class Ready>
constexpr bool waited_in_model(const Ready&) noexcept {
  return false;
}

}  // namespace ropewalk::node
