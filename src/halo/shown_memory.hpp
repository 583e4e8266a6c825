// The caller's memory that neighbours read and write in a direct exchange, and how they reach it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "halo/links.hpp"
#include "halo/request.hpp"

namespace ropewalk::halo {

struct ShownMemory {
  const void* data = nullptr;  // null: no neighbour needs it
  std::size_t bytes = 0;
};

// For faces, the list has where they are sent from, then where they are received, one entry for
// each direction. For fields it has the whole array of each. All ranks have equally many entries.
std::vector<ShownMemory> shown_memory(const HaloRequest&, const Links&);

// Returns the bytes of a field's array, ghosts included.
std::size_t array_bytes(const Field&);
// What comes in over the link, which is as much as goes out.
std::size_t link_bytes(const HaloRequest&, const Link&);

// The values go from the best to the worst: that of several buffers is the greatest.
enum class Reach : std::uint8_t {
  mapped,     // by all neighbours
  by_kernel,  // private memory, from and to which the kernel copies
  by_owner    // private memory that the kernel refuses: a device's
};
Reach reach_of(std::span<const ShownMemory>);

}  // namespace ropewalk::halo
