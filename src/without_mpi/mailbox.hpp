// The messages of one communicator as one of its ranks sees them: it matches what comes with the
// receives that are posted, in MPI's order, and drives the connections.
//
// A long message that nobody has a receive for stays in its connection, so that its sender waits,
// as it would for a rendezvous. If a receive waits for a later message of that sender, it is taken
// in all the same: nothing may hang for want of a receive that comes later.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "os/fork.hpp"
#include "os/poller.hpp"
#include "without_mpi/endpoint.hpp"
#include "without_mpi/incoming_connection.hpp"
#include "without_mpi/matching.hpp"
#include "without_mpi/outgoing_connection.hpp"
#include "without_mpi/socket_transfer.hpp"

namespace ropewalk::without_mpi {

// A message that a probe has found.
struct Found {
  int source;
  int tag;
  std::size_t bytes;
};

// Its functions may be called by several threads.
class Mailbox {
 public:
  // `members` says which rank of the group each rank of the communicator is; `name` is the same on
  // all of them, and no other communicator's of the group.
  static std::shared_ptr<Mailbox> create(std::shared_ptr<Endpoint> endpoint, std::string name,
                                         std::vector<int> members, int rank);
  Mailbox(std::shared_ptr<Endpoint> endpoint, std::string name, std::vector<int> members, int rank);
  ~Mailbox();
  Mailbox(const Mailbox&) = delete;
  Mailbox& operator=(const Mailbox&) = delete;

  // Both return at once. A transfer that has failed is over, with its error.
  void send(SocketTransfer&);
  void receive(SocketTransfer&);
  // Makes progress, and returns whether the transfer is over.
  bool test(SocketTransfer&);
  // Ends a receive, whose buffer is not written to any more: what of its message has not come is
  // dropped. Ends a send of which nothing has gone out; any other ends as it would have.
  void cancel(SocketTransfer&);
  std::optional<Found> probe(int source, int tag);

  // Sends what is still queued, for a moment at most, and closes all connections. What is not over
  // by then has failed.
  void close() noexcept;
  // The same for all mailboxes of an endpoint.
  static void close_all(const Endpoint&) noexcept;

  // Moves what can be moved, in all communicators of this process that have anything to move and
  // that no other thread is in.
  static void progress_all() noexcept;

 private:
  struct Peer {
    int rank = 0;
    std::unique_ptr<OutgoingConnection> out;
    bool out_waits = false;  // for the connection to become writable
    std::unique_ptr<IncomingConnection> in;
    bool in_ended = false;
    std::int64_t held_since_ns = 0;     // a message waits in the connection
    SocketTransfer* receive = nullptr;  // where the message under way goes: here,
    Letter* letter = nullptr;           // or there
    std::string lost;                   // why nothing comes from it any more
  };
  using Lock = std::unique_lock<std::mutex>;

  // All of these are called with the mutex held.
  void progress();
  void claim_connections();
  void read(Peer&);
  void begin_message(Peer&);
  void lose(Peer&, const std::string& why);
  void keep(Peer&);
  void give(Letter&, SocketTransfer&);
  void flush(Peer&);
  void deliver_to_self(SocketTransfer& send);
  void wait_for_more(int source, std::int64_t held_for_ns);
  void take_in(SocketTransfer&);
  OutgoingConnection& connection_to(int rank);
  std::string named(int rank) const;
  void count_work() noexcept;

  const std::shared_ptr<Endpoint> endpoint_;
  const std::string name_;
  const std::vector<int> members_;
  const int rank_;
  std::mutex mutex_;
  os::Poller poller_;
  std::vector<Peer> peers_;
  Matching matching_;
  std::uint32_t seen_arrivals_ = 0;
  unsigned idle_tests_ = 0;
  // A poll is a system call, which serves all transfers: it is made once in as many tests as there
  // are transfers that nobody has seen the end of, or in most_tests_per_poll.
  unsigned unseen_ = 0;
  unsigned tests_since_poll_ = 0;
  bool closed_ = false;
  os::ForkCheck fork_;
  // Receives are posted, or something waits to be sent. It may be true for too long, which costs a
  // look.
  std::atomic<bool> has_work_{false};
};

}  // namespace ropewalk::without_mpi
