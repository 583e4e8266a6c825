// The hierarchy under a communicator whose ranks are on several nodes: where each rank is, the team
// of this node's ranks, and the communicators and rules of messages between nodes.
//
// An error of one rank reaches all others (error_notices.hpp), wherever they wait
// (message_waits.hpp).
#pragma once

#include <cstdint>
#include <memory>
#include <string>

#include "collectives/engine.hpp"
#include "collectives/nodes/error_notices.hpp"
#include "collectives/nodes/layout.hpp"
#include "collectives/nodes/message_comms.hpp"
#include "collectives/nodes/message_waits.hpp"
#include "collectives/nodes/messages.hpp"
#include "collectives/nodes/reduction_threads.hpp"
#include "mpi/mpi.hpp"
#include "node/liveness.hpp"
#include "tuning/over_nodes.hpp"

namespace ropewalk::collectives::nodes {

// What the program and the environment ask for.
struct NodesSettings {
  tuning::Values values{{}, {}};  // sizes at which calls go another way, the same on all ranks
  bool without_mpi = false;       // the same on all ranks
  int allreduce = -1;      // an Algorithm (choice.hpp), the same on all ranks; -1: none asked for
  bool all_sizes = false;  // ROPEWALK_MOVEMENTS=nodes, the same on all ranks
  std::size_t longest_message = 0;  // of the ring, in bytes; the same on all ranks
  int threads = 0;                  // of this rank; 0: as many as it has cores for
};

class Nodes final {
 public:
  // Collective over `comm`. Returns null on every rank where a node's ranks cannot be a team;
  // `reason` then says why. `attach_reason`: why this node does not attach private memory.
  // `threads`: of this rank, for large reductions; 0: as ROPEWALK_REDUCTION_THREADS says.
  static std::unique_ptr<Nodes> create(mpi::Comm comm, NodeLayout layout, int threads,
                                       std::string& reason, std::string& attach_reason);
  Nodes(const Nodes&) = delete;
  Nodes& operator=(const Nodes&) = delete;

  const NodeLayout& layout() const noexcept { return layout_; }
  // Returns the engine of this node's ranks, by their place. It has a team of one rank where the
  // node has one; algorithms want two or more.
  Engine& engine() noexcept { return *engine_; }
  bool alone() const noexcept { return engine_->size() == 1; }  // on this node
  const NodesSettings& settings() const noexcept { return settings_; }
  const tuning::Values& values() const noexcept { return settings_.values; }
  // What choices depend on, besides sizes.
  tuning::Shape shape() const noexcept {
    return {layout_.count(), layout_.least,       layout_.most,
            crowded,         settings_.all_sizes, settings_.without_mpi};
  }
  const MessageComms& comms() const noexcept { return comms_; }
  Messages& messages() noexcept { return messages_; }
  MessageWaits& waits() noexcept { return waits_; }
  // Why nobody notices ranks that die on other nodes; empty where they are noticed.
  const std::string& liveness_reason() const noexcept { return liveness_reason_; }
  // From now on waiting ranks give their cores away at once. To be called on all ranks of a node or
  // on none.
  void share_cores();

  Path path = Path::none;  // of the last call
  bool crowded = false;    // some ranks share cores, on this node or another: all ranks know it

  // ---- what the first large reduction makes, collectively

  // Makes the communicators of leaders. Returns false on all ranks where MPI has none left for
  // them. Throws where another rank makes another call than `header` says.
  bool make_leaders(const Header& header);
  // Makes the threads that share this rank's large reductions; null means the caller alone. Ranks
  // on the same cores share these out, and all agree on how many lanes communicate.
  ReductionThreads* make_threads(const Header& header);
  int reduction_threads() const noexcept { return threads_ != nullptr ? threads_->count() : 1; }

  // ---- calls

  // Every call that uses the team or the messages runs in here: run([&] { ... }). What it throws is
  // told to all ranks, and no later call is made.
  template <class Call>
  void run(Call&& call) {
    notices_.begin_call();
    try {
      if (notices_.calls() % calls_per_look == 0) waits_.look();
      call();
    } catch (...) {
      notices_.fail_call();
    }
    notices_.end_call();
  }
  // A collective of MPI's own on all ranks: call(communicator, waiter), see mpi/waiter.hpp. Never
  // on the program's communicator, which a nonblocking call may outlive. Never a blocking call,
  // which notices nothing: neither the dead nor, where nobody is watched, a rank that has failed.
  template <class Call>
  void run_by_mpi(const Call& call) {
    run([&] {
      CallWaiter waiter(waits_);
      call(comms_.all(), &waiter);
    });
  }
  const std::uint64_t& calls() const noexcept { return notices_.calls(); }  // begun or refused
  // This is for a rank that refuses its arguments before the call.
  void refuse(const char* message) noexcept { notices_.refuse_call(message); }
  // The same for all calls to come, by a rank that an exception takes away.
  void leave_for_good() noexcept {
    if (comms_.is_here()) notices_.refuse_all_calls();
  }

 private:
  // A rank whose calls never wait, since it only sends to a root, looks around all the same.
  static constexpr std::uint64_t calls_per_look = 64;

  Nodes(NodeLayout layout, std::unique_ptr<Engine> engine, const NodesSettings& settings,
        mpi::Comm messages, std::unique_ptr<node::Liveness> liveness, std::string liveness_reason);

  NodeLayout layout_;
  std::unique_ptr<Engine> engine_;
  NodesSettings settings_;
  std::unique_ptr<node::Liveness> liveness_;
  std::string liveness_reason_;
  MessageComms comms_;
  ErrorNotices notices_;
  MessageWaits waits_;
  Messages messages_;
  bool asked_for_leaders_ = false;
  bool asked_for_threads_ = false;
  std::unique_ptr<ReductionThreads> threads_;
};

}  // namespace ropewalk::collectives::nodes
