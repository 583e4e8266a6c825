// Which path a collective among the ranks of one node takes, as its algorithm asks: in the slots,
// as a copy, mapped, by the kernel, or through staging areas (docs/explanation/collectives.md).
#pragma once

#include <cstddef>
#include <cstdint>

#include "tuning/reasons.hpp"

namespace ropewalk::tuning {

enum class Collective : std::uint8_t {
  barrier,
  broadcast,
  reduce,
  allreduce,
  scan,
  exscan,
  reduce_scatter,
  allgather,
  gather,
  scatter,
  alltoall,
  // Forms with a length for each block; where a size is compared, blocks are taken to be equal.
  allgatherv,
  gatherv,
  scatterv,
  alltoallv
};

// Returns the bytes of a slot of alltoallv before its blocks: where the send buffer lies, then the
// place and the length of each rank's block (collectives/alltoall.cc has the structs).
constexpr std::size_t alltoallv_table_bytes(int ranks) {
  constexpr std::size_t buffers = 24, block = 16;
  return buffers + static_cast<std::size_t>(ranks) * block;
}

// `bytes` is the length of the vector, or of one block where each rank has one for each other.
void reason_on_node(Reasons&, Collective, std::size_t bytes, const Situation&);

}  // namespace ropewalk::tuning
