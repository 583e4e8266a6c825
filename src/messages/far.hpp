// Messages to and from ranks of other nodes: each is one of MPI's, on a communicator of its own.
//
// A receive is given to MPI only when a probe has found its message. So a receive whose source is
// open can match messages of either kind, and the length of a message is known before its buffer is
// used.
#pragma once

#include <optional>

#include "messages/operation.hpp"
#include "messages/posted.hpp"
#include "mpi/mpi.hpp"

namespace ropewalk::messages {

class Far {
 public:
  // Collective over `comm`, of which it makes another. Throws Error(mpi) on every rank where MPI
  // has none left.
  Far(mpi::Comm comm, int rank, Posted& posted);
  // Collective, unless `leave()` was called.
  ~Far();
  Far(const Far&) = delete;
  Far& operator=(const Far&) = delete;

  void start_send(MessageOperation&);
  // Moves everything on. What goes wrong with a message is told to whoever waits for that one.
  void advance();
  // Withdraws a message that is under way: a receive is cancelled, a send is left to MPI.
  void withdraw(MessageOperation&) noexcept;
  std::optional<MessageStatus> probe(int source, int tag);
  bool idle() const noexcept { return under_way_.empty(); }
  // MPI keeps the communicator: an exception takes this rank away.
  void leave() noexcept { comm_ = mpi::comm_null(); }

 private:
  bool found(int source, int tag, mpi::Status&);
  void receive_found(const MessageOperation& probed, mpi::Status);
  void receive(MessageOperation&, const mpi::Status&);
  void begin_receive(MessageOperation&, const mpi::Status&);
  bool advance(MessageOperation&) noexcept;

  mpi::Comm comm_;
  int process_;  // that made it
  Posted& posted_;
  OperationList under_way_;
};

}  // namespace ropewalk::messages
