// Large messages between ranks of one node: the envelope through MPI, the data through memory.
//
// Instead of the data, the sender sends a descriptor of 64 bytes, with the same communicator and
// tag. MPI matches it as it would have matched the message. The receiver's own receive gets it,
// which is larger; the receiver knows it by a random key, copies the data from the arena of the
// sender, and corrects the status. docs/explanation/drop-in-messages.md has the protocol and why
// it is safe.
//
// A descriptor goes only to a process that has promised to understand it in every receive that it
// has made since MPI_Init. The parts: envelope.hpp (what lies in shared memory), promise.hpp (who
// promises), message_peers.hpp (who has promised), outbox.hpp (messages on their way out),
// taking.hpp (a message that has come), pending.hpp (requests of the program).
#pragma once

#include "mpi/mpi.hpp"
#include "ropewalk/collectives.hpp"

namespace ropewalk::preload::messages {

bool wanted() noexcept;  // by ROPEWALK_MESSAGES

// Collective over the ranks of a team that has just been made; nothing unless messages are wanted
// and the team has all of MPI_COMM_WORLD on one node. From then on its ranks may send. Throws
// nothing on one rank alone.
void meet(Collectives& team, mpi::Comm comm);

// MPI is about to end. Waits for nothing that another rank's program must do.
void end() noexcept;

}  // namespace ropewalk::preload::messages
