// This file has the entry points for large messages between ranks of one node, whose envelope goes
// through MPI and whose data goes through memory.
//
// Instead of the data, the sender sends a descriptor of 64 bytes, with the same communicator and
// tag. MPI matches it as it would have matched the message. The receiver's own receive, which is
// larger, gets the descriptor. The receiver recognizes it by a random key, copies the data from the
// arena of the sender, and corrects the status. docs/explanation/drop-in-messages.md describes the
// protocol and says why it is safe.
//
// A descriptor goes only to a process that has promised to understand it in every receive that it
// has made since MPI_Init. The parts are envelope.hpp (what lies in shared memory), promise.hpp
// (who can promise), message_peers.hpp (who has promised), outbox.hpp (messages on their way out),
// taking.hpp (a message that has come) and pending.hpp (requests of the program).
#pragma once

#include <cstdint>

#include "functions.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/collectives.hpp"

namespace ropewalk::preload::messages {

// Says whether ROPEWALK_MESSAGES asks for such messages.
bool wanted() noexcept;

// Says in which teams this rank may meet the others. All ranks go by the least.
enum class Meeting : std::int64_t {
  never,        // it wants no messages
  world_alone,  // its threads in MPI may make other teams of all ranks in any order
  any_team      // of all ranks
};
Meeting own_meeting() noexcept;
// Lets the ranks of each node exchange their promises, when a team has just been made; it is
// collective over the team. From then on they may send descriptors to each other. The call does
// nothing where the ranks do not meet in this team, or have met. It throws on all ranks or on none.
void meet(Collectives& team, mpi::Comm comm, Meeting);

// The program disconnects a communicator: waits for what is under way of freed requests, for MPI
// knows only descriptors of those messages.
void finish_freed(Word comm) noexcept;
// A communicator of the program is about to be freed, and has been freed.
void begin_free(Word comm) noexcept;
void end_free(Word comm) noexcept;

// MPI is about to end. Messages end with MPI_COMM_SELF, whose callbacks may still receive some.
void begin_finalize() noexcept;
// Waits for nothing that another rank's program must do.
void end() noexcept;
// Whether messages go on after begin_finalize().
bool go_on() noexcept;

}  // namespace ropewalk::preload::messages
