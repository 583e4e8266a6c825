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

#include "functions.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/collectives.hpp"

namespace ropewalk::preload::messages {

// Says whether ROPEWALK_MESSAGES asks for such messages.
bool wanted() noexcept;

// Says whether this rank wants messages, and calls MPI from one thread at a time.
bool may_meet() noexcept;
// Lets the ranks of each node exchange their promises, when a team has just been made; it is
// collective over the team. From then on they may send descriptors to each other. The call does
// nothing unless the team has all of MPI_COMM_WORLD. It throws on all ranks or on none. All ranks
// may meet: where one has several threads in MPI, its first team of all ranks need not be that of
// the others.
void meet(Collectives& team, mpi::Comm comm);

// A communicator of the program is about to be freed.
void forget(Word comm) noexcept;

// Ends all messages when MPI is about to end. It waits for nothing that another rank's program must
// do.
void end() noexcept;

}  // namespace ropewalk::preload::messages
