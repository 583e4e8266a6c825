// Why a call went to MPI.
#pragma once

#include <cstdint>

namespace ropewalk::preload {

enum class Reason : std::uint8_t {
  none,              // it did not
  new_communicator,  // its first collectives go to MPI: many communicators see no more of them
  outside,           // before MPI_Init, after MPI_Finalize, or in an MPI session alone
  intercommunicator,
  one_rank,
  other_world,      // ranks of another MPI_COMM_WORLD may run without the drop-in
  no_team,          // ranks of a node that cannot map each other's memory
  no_communicator,  // of MPI's is left for messages between nodes, or to spare
  no_addresses,     // the same, for a limit of the address space
  settings,         // one is malformed, or ranks have it otherwise that must have it alike
  devices,          // a buffer may be the memory of a device, on some rank
  no_grid,          // a neighbourhood that is not Cartesian, or where a rank is a neighbour twice
  nonblocking,  // no MPI_THREAD_MULTIPLE, no cores for the threads that would serve, or too small
  arguments,    // MPI's to judge: its error, in its words
  no_memory     // for an entry of this communicator: an error, not a call of MPI's
};
inline constexpr int reasons = 14;
const char* text(Reason);

}  // namespace ropewalk::preload
