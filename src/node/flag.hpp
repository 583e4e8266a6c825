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

// Written by one rank and read by others.
template <class T>
using Flag = std::atomic<T>;

// Written before a flag is released, read after it was acquired.
template <class T>
using Plain = T;

// True when the model has waited until `ready()` was true.
template <class Ready>
constexpr bool waited_in_model(const Ready&) noexcept {
  return false;
}

}  // namespace ropewalk::node
