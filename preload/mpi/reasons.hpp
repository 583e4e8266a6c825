// Why a call went to MPI.
#pragma once

#include <cstdint>

namespace ropewalk::preload {

enum class Reason : std::uint8_t {
  none,              // it was served
  new_communicator,  // its first collectives go to MPI: many communicators see no more of them
  outside,           // before MPI_Init, after MPI_Finalize, or in an MPI session alone
  intercommunicator,
  one_rank,
  other_world,      // ranks of another MPI_COMM_WORLD may run without the drop-in
  no_team,          // ranks of a node that cannot map each other's memory
  no_communicator,  // MPI has too few communicators left to spare one for messages between nodes
  no_addresses,     // as no_team, because of a limit of the address space
  settings,         // one is malformed, or differs between ranks where it must not
  devices,          // a buffer may be the memory of a device, on some rank
  no_grid,          // no topology, too many neighbours, or the MPI pairs blocks in several ways
  several_nodes,    // for a call that is served on one node, or too many ranks on it
  nonblocking,  // no MPI_THREAD_MULTIPLE, no cores for the threads that would serve, or too small
  arguments,    // MPI must judge them: the error is MPI's, in its words
  window,       // not all ranks of it serve it, or it is of a kind that only MPI serves
  message,      // a large message whose receiver or buffer is not reached through memory
  persistent,   // not all ranks can serve a persistent collective
  no_memory     // there is no room for an entry of this communicator: an error, no call of MPI
};
inline constexpr int reasons = 18;
const char* text(Reason);

}  // namespace ropewalk::preload
