// The messages from this rank to another in one communicator, and the connection they take.
#pragma once

#include <sys/uio.h>

#include <cstddef>
#include <deque>
#include <string>

#include "without_mpi/socket.hpp"
#include "without_mpi/socket_transfer.hpp"
#include "without_mpi/wire.hpp"

namespace ropewalk::without_mpi {

class OutgoingConnection {
 public:
  // Takes a connection over which the greeting has gone.
  explicit OutgoingConnection(Socket socket) : socket_(std::move(socket)) {}

  const os::Descriptor& socket() const noexcept { return socket_.get(); }
  bool idle() const noexcept { return queue_.empty(); }  // nothing waits to be sent
  // Whether the connection has failed, and how. What is pushed later fails at once.
  const std::string& failure() const noexcept { return failure_; }

  void push(SocketTransfer&);
  // Forgets a send of which nothing has gone out. Returns false where something has.
  bool withdraw(const SocketTransfer&);
  // Sends what the kernel takes now. Sends are over when the kernel has all of their bytes.
  void flush();
  void fail(const std::string& why);

 private:
  struct Item {
    Envelope envelope;
    SocketTransfer* transfer;
    std::size_t sent = 0;  // of the envelope and the data
  };
  std::size_t gather(iovec* pieces) const;
  void take(std::size_t bytes);

  Socket socket_;
  std::deque<Item> queue_;
  std::string failure_;
};

}  // namespace ropewalk::without_mpi
