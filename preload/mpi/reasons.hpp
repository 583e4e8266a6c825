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
  other_world,  // ranks of another MPI_COMM_WORLD may run without the drop-in
  no_team,      // ranks of a node that cannot map each other's memory
  no_grid,      // a neighbourhood that is not Cartesian, or where a rank is a neighbour twice
  nonblocking,  // no MPI_THREAD_MULTIPLE, no cores for the threads that would serve, or too small
  arguments     // MPI's to judge: its error, in its words
};
inline constexpr int reasons = 10;
const char* text(Reason);

}  // namespace ropewalk::preload
