// The thread that answers for a rank's part of a window what ranks on other nodes ask, while the
// rank computes.
//
// It applies their operations by the same atomic instructions as ranks of this node do, so all are
// atomic among each other. One message is served at a time, but for answers, which are left to MPI
// until it has sent them.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <exception>
#include <list>
#include <memory>
#include <vector>

#include "messages/one_sided_request.hpp"
#include "messages/window_memory.hpp"
#include "mpi/attributes.hpp"
#include "mpi/mpi.hpp"
#include "node/waits.hpp"
#include "threads/thread.hpp"

namespace ropewalk::messages {

// Tells the others that this rank answers nothing more. MPI may keep what it cannot send at once.
void tell_left(mpi::Comm comm, int own, int ranks) noexcept;

class WindowServer {
 public:
  // Serves what comes over `comm`; `waits` are those of the ranks of this node. Throws
  // Error(system) where there can be no thread.
  WindowServer(mpi::Comm comm, int own, int ranks, const WindowMemory& memory, node::Waits& waits);
  // Nothing may be under way to it any more, or nobody waits for it.
  ~WindowServer();
  WindowServer(const WindowServer&) = delete;
  WindowServer& operator=(const WindowServer&) = delete;

  // Whether a rank has left the window alone: it answers nothing more.
  bool has_left(int rank) const noexcept;
  int first_left() const noexcept;  // the lowest such rank, or -1
  // Throws what MPI has told the thread, after which nothing is served any more.
  void require_serving() const;

 private:
  // It stays where it is until MPI has sent it.
  struct Answer {
    std::array<std::byte, 8> element{};
    mpi::Request request;
  };

  static void stop_server(void* server) noexcept;
  void stop() noexcept;
  void forget_attribute() noexcept;
  void run() noexcept;
  void serve_until_told();
  bool serve_one();
  void serve(const OneSidedRequest&, const std::byte* data, int source);
  void receive_data(const OneSidedRequest&, int source);
  void answer_element(const OneSidedRequest&, const std::byte* data, int source);
  void answer(const void* data, std::size_t bytes, int source, Answer&);
  void advance_answers();
  void leave_answers() noexcept;
  std::byte* at(const OneSidedRequest& request) const noexcept {
    return memory_.data + request.offset;
  }

  const mpi::Comm comm_;
  const int own_;
  const int ranks_;
  const WindowMemory memory_;
  node::Waits& waits_;
  std::vector<std::byte> request_;  // with the data behind it
  std::list<Answer> answers_;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> failed_{false};  // released after error_ is written
  std::exception_ptr error_;
  std::unique_ptr<std::atomic<bool>[]> left_;  // by rank
  mpi::Keyval end_of_mpi_;
  threads::Thread thread_;  // last: it uses all of the above
};

}  // namespace ropewalk::messages
