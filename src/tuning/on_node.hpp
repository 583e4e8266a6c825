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
  alltoall
};

// `bytes`: of the vector, or of one block where each rank has one for each other.
void reason_on_node(Reasons&, Collective, std::size_t bytes, const Situation&);

}  // namespace ropewalk::tuning
