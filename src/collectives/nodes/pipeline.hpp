// Large reductions over nodes in the three steps of Hashmi et al. (2018), chunk by chunk.
#pragma once

#include "collectives/nodes/choice.hpp"

namespace ropewalk::collectives::nodes {

struct Vectors {
  const void* send;
  void* receive;  // null on ranks that get no result
  std::size_t count;
  int root;  // -1: every rank gets the result
};

// To be called inside of Nodes::run(), and not for operations that only MPI knows.
void pipelined_reduce(Nodes&, const Vectors&, const Operation&, Choice);

}  // namespace ropewalk::collectives::nodes
