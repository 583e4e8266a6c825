// Whether nodes are parts of one machine, as containers are, and share its cores.
#pragma once

#include "mpi/mpi.hpp"

namespace ropewalk::node {

struct Crowding {
  bool here = false;      // the ranks on this one's machine are more than their cores
  bool anywhere = false;  // those of some machine are: the same on all ranks
};

// Collective. Tells whether the ranks of the communicator that run on a machine, on whatever node
// of it, are more than the cores that they may use together.
Crowding crowding(mpi::Comm comm, int size);

}  // namespace ropewalk::node
