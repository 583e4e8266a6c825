// How a rank waits for messages of other nodes. Meanwhile it looks for error notices and for dead
// ranks, of its own node and of others; each of these becomes an exception.
#pragma once

#include <mutex>
#include <vector>

#include "collectives/call_timeout.hpp"
#include "collectives/nodes/error_notices.hpp"
#include "collectives/nodes/layout.hpp"
#include "mpi/mpi.hpp"
#include "mpi/waiter.hpp"
#include "node/liveness.hpp"
#include "node/team.hpp"
#include "os/waiting.hpp"

namespace ropewalk::collectives::nodes {

// These requests are under way. Where an exception leaves their scope, receives are withdrawn:
// nothing is written to buffers that may be gone. Sends are left to MPI.
struct Requests {
  std::vector<mpi::Request> receives;
  std::vector<mpi::Request> sends;

  Requests() = default;
  ~Requests() {
    for (mpi::Request& request : receives) mpi::withdraw(request);
  }
  Requests(const Requests&) = delete;
  Requests& operator=(const Requests&) = delete;
  bool test() { return mpi::test_each(receives) && mpi::test_each(sends); }
  // Makes room first: a request that is not kept cannot be withdrawn.
  template <class... Arguments>
  void receive(Arguments... arguments) {
    receives.push_back(mpi::request_null());
    receives.back() = mpi::ireceive(arguments...);
  }
};

// All waits of calls over nodes go through here. For the node's team this is its watcher.
class MessageWaits final : public node::Watcher {
 public:
  // All of these outlive the waits. `liveness` is null where nobody notices the dead of other
  // nodes.
  MessageWaits(const NodeLayout& layout, node::Team& team, ErrorNotices& notices,
               node::Liveness* liveness);
  MessageWaits(const MessageWaits&) = delete;
  MessageWaits& operator=(const MessageWaits&) = delete;

  // Returns when ready() is true. It is called often and must progress MPI by what it tests; it may
  // do work of its own. Spins, then gives the core away between looks.
  template <class Ready>
  void until(Ready ready) {
    for (unsigned spin = 0; spin < policy_->spins; ++spin) {
      if (ready()) return;
    }
    wait_slowly([](void* test) { return (*static_cast<Ready*>(test))(); }, &ready);
  }
  void wait(mpi::Request& request) {
    until([&] { return mpi::test(request); });
  }
  void wait(Requests& requests) {
    until([&] { return requests.test(); });
  }
  // For the request of a collective: where this throws, MPI keeps the request and its buffers.
  void wait_or_leave(mpi::Request& request);

  // Looks once for error notices and for the dead of other nodes.
  void look() override;
  // A call that takes longer fails from now on, with Error(peer_dead) on all ranks; 0: none.
  void limit_calls(int seconds) noexcept { timeout_ = CallTimeout(seconds); }
  // From now on this rank gives its core away at once.
  void share_cores() noexcept;

 private:
  void lost(int place) override;
  void wait_slowly(bool (*ready)(void*), void* test);

  const NodeLayout& layout_;
  node::Team& team_;
  ErrorNotices& notices_;
  node::Liveness* liveness_;
  const os::WaitPolicy* policy_;
  std::mutex looking_;  // one thread looks at a time
  CallTimeout timeout_{0};
};

// Waits of one call, for collectives that MPI makes.
class CallWaiter final : public mpi::Waiter {
 public:
  explicit CallWaiter(MessageWaits& waits) : waits_(waits) {}
  void wait(mpi::Request& request) override { waits_.wait_or_leave(request); }

 private:
  MessageWaits& waits_;
};

}  // namespace ropewalk::collectives::nodes
