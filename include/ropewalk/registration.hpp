// Registration caches by themselves: what one of a given size would have counted of a program.
//
// Memory of other ranks that was attached stays attached, in a registration cache of each process
// (docs/explanation/collectives.md, "Private buffers and XPMEM"). A program that runs under
// ROPEWALK_REGISTRATION_TRACE writes down what it looks up there; caches of other sizes and other
// orders of eviction are tried on that.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>

#include "ropewalk/collectives.hpp"

namespace ropewalk {

// Which entry makes room for a new one.
enum class Eviction : std::uint8_t {
  fifo,  // the one that was attached first
  lru    // the one that was used least recently
};
RW_EXPORT const char* name(Eviction);  // "FIFO", "LRU"

// One look into the cache, for memory of a process.
struct RegistrationRequest {
  std::int64_t process = 0;
  std::uint64_t address = 0;  // below 2^47
  std::uint64_t bytes = 0;    // at least 1
};

// Returns what a cache of `entries` entries (at least 1) counts of the requests, each of which is
// released before the next one. Nothing is attached. Throws Error(argument) for a request of no
// bytes, or of addresses that no program has.
RW_EXPORT RegistrationCounts replay_registrations(std::span<const RegistrationRequest> requests,
                                                  std::size_t entries, Eviction);

}  // namespace ropewalk
