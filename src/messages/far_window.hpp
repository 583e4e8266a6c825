// Operations on the parts of a window that lie on other nodes: requests to the threads that answer
// for them (window_server.hpp).
#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "messages/one_sided_request.hpp"
#include "messages/window_memory.hpp"
#include "messages/window_server.hpp"
#include "mpi/mpi.hpp"
#include "node/liveness.hpp"
#include "node/waits.hpp"

namespace ropewalk::messages {

class FarWindow final : public node::Watcher {
 public:
  // Collective over `comm`, of which it makes another. Throws on every rank: Error(unsupported)
  // where MPI lets only one thread call it, Error(mpi) where it has no communicator left.
  static std::unique_ptr<FarWindow> create(mpi::Comm comm, const WindowMemory& own,
                                           node::Waits& waits);
  ~FarWindow() override;
  FarWindow(const FarWindow&) = delete;
  FarWindow& operator=(const FarWindow&) = delete;

  // Returns when the data may be used again.
  void put(const void* from, std::size_t bytes, int to, std::size_t offset);
  void get(void* into, std::size_t bytes, int from, std::size_t offset);
  // The header has the type, the operation and the offset.
  void accumulate(OneSidedRequest, const std::byte* operands, std::size_t count, int to);
  // The answer is one element.
  void change_element(const OneSidedRequest&, const void* data, std::size_t bytes, void* before,
                      int rank);
  void signal(int rank, int index, std::uint64_t by);
  // Returns when all that this rank has asked of others is done, but for those of rank `except`.
  void flush(int except = -1);
  // Collective: all ranks have come here.
  void barrier();
  // To be called before it is destroyed. Collective; but where an exception takes this rank away,
  // it goes alone, and the others are told.
  void end(bool alone) noexcept;

  // For a rank that waits for all, or for anyone: throws Error(peer_dead) where a rank has died, or
  // has left after an error, and what MPI has told the thread of this rank.
  void look() override;
  void lost(int /*rank*/) override {}

 private:
  class Wait;

  FarWindow(mpi::Comm comm, bool crowded);
  bool is_here() const noexcept;
  void ask(const OneSidedRequest&, const void* data, std::size_t bytes, int rank);
  // Sends a request whose answer is `bytes` long, and waits for that.
  void ask_for(const OneSidedRequest&, const void* data, std::size_t bytes, int rank, void* answer,
               std::size_t answer_bytes);
  void send(const OneSidedRequest&, const void* data, std::size_t bytes, int rank);
  void finish(mpi::Request, int rank);
  void wait_for(mpi::Request&, int rank);
  void look_for_dead();
  // This rank stands for all: a call that waits for each of them.
  void require_whole(int rank);

  mpi::Comm comm_;
  int process_;  // that made it
  int rank_;
  int size_;
  bool crowded_;  // there are more ranks than cores
  bool has_left_ = false;
  std::unique_ptr<node::Liveness> liveness_;  // null: nobody notices that a rank has died
  std::vector<std::byte> request_;            // with the data behind it
  std::vector<int> unanswered_;               // requests by rank, since its last answer
  std::unique_ptr<WindowServer> server_;
};

}  // namespace ropewalk::messages
