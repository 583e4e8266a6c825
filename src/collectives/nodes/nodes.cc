#include "collectives/nodes/nodes.hpp"

#include <array>
#include <exception>
#include <memory>
#include <utility>

#include "collectives/nodes/choice.hpp"
#include "mpi/collectively.hpp"
#include "mpi/scoped_comm.hpp"

namespace ropewalk::collectives::nodes {
namespace {

constexpr const char* none_left =
    "communicators: MPI has none left for the messages between nodes; free some";

NodesSettings settings_for(int threads) {
  NodesSettings settings;
  settings.values = values_for_nodes();
  settings.allreduce = tuning::wished_algorithm();
  settings.all_sizes = wishes_all_sizes();
  settings.without_mpi = !mpi::has_collectives();
  settings.longest_message = settings.values[tuning::Id::nodes_most_message];
  settings.threads = checked_threads(threads);
  const int wished = wished_threads();
  if (threads == 0) settings.threads = wished;
  return settings;
}

// Collective over all nodes: tells whether each has its engine, and every rank has communicators to
// take. The greatest `longest_message` of all ranks holds.
bool all_can(mpi::Comm comm, bool has_engine, std::size_t& longest_message, std::string& reason) {
  std::array<std::int64_t, 3> most{has_engine ? 0 : 1, static_cast<std::int64_t>(longest_message),
                                   MessageComms::may_take(1) ? 0 : 1};
  mpi::all_reduce(most, mpi::Combine::max, comm);
  longest_message = static_cast<std::size_t>(most[1]);
  if (most[0] != 0 && reason.empty()) reason = "the ranks of another node cannot share memory";
  if (most[2] != 0 && reason.empty()) {
    reason = "communicators: those over nodes hold " + std::to_string(MessageComms::most_taken) +
             " of MPI's already, which has few; free some";
  }
  return most[0] == 0 && most[2] == 0;
}

}  // namespace

std::unique_ptr<Nodes> Nodes::create(mpi::Comm comm, NodeLayout layout, int threads,
                                     std::string& reason, std::string& attach_reason) {
  std::unique_ptr<Engine> engine;
  NodesSettings settings;
  {
    mpi::ScopedComm node;
    if (!mpi::try_split(comm, layout.node, layout.rank, node.comm)) {
      reason = none_left;
      return nullptr;
    }
    mpi::collectively(comm, [&] {
      mpi::collectively(node.comm,
                        [&] { engine = Engine::create(node.comm, reason, attach_reason); });
      settings = settings_for(threads);
    });
  }
  if (!all_can(comm, engine != nullptr, settings.longest_message, reason)) return nullptr;
  std::string liveness_reason;
  std::unique_ptr<node::Liveness> liveness = node::Liveness::create(comm, liveness_reason);
  // This is no duplicate, because MPI_Comm_dup would call the attribute functions of the program.
  mpi::Comm messages;
  if (!mpi::try_split(comm, 0, layout.rank, messages)) {
    reason = none_left;
    return nullptr;
  }
  return std::unique_ptr<Nodes>(new Nodes(std::move(layout), std::move(engine), settings, messages,
                                          std::move(liveness), std::move(liveness_reason)));
}

Nodes::Nodes(NodeLayout layout, std::unique_ptr<Engine> engine, const NodesSettings& settings,
             mpi::Comm messages, std::unique_ptr<node::Liveness> liveness,
             std::string liveness_reason)
    : layout_(std::move(layout)),
      engine_(std::move(engine)),
      settings_(settings),
      liveness_(std::move(liveness)),
      liveness_reason_(std::move(liveness_reason)),
      comms_(messages),
      notices_(comms_, layout_, liveness_.get()),
      waits_(layout_, engine_->team(), notices_, liveness_.get()),
      messages_(layout_, comms_, notices_, waits_) {}

void Nodes::share_cores() {
  engine_->share_cores();
  waits_.share_cores();
}

bool Nodes::make_leaders(const Header& header) {
  if (!asked_for_leaders_) {
    messages_.meet_all(header);
    mpi::collectively(comms_.all(), [&] {
      comms_.split_leaders(layout_, tuning::most_slices(values(), layout_.most));
    });
    asked_for_leaders_ = true;
  }
  return comms_.has_leaders();
}

ReductionThreads* Nodes::make_threads(const Header& header) {
  if (asked_for_threads_) return threads_.get();
  messages_.meet_all(header);
  mpi::collectively(comms_.all(), [&] {
    const ThreadShare share = share_threads(comms_.all(), settings_.threads, layout_.most == 1);
    std::exception_ptr refused;
    try {
      if (share.threads > 1) {
        threads_ = std::make_unique<ReductionThreads>(share.threads, share.crowded, values());
      }
    } catch (...) {
      refused = std::current_exception();
    }
    // Where nobody has asked for threads and a rank can have none, all do without.
    if (mpi::true_on_all(comms_.all(), refused == nullptr)) {
      return comms_.split_lanes(share.communicating, layout_.rank);
    }
    threads_.reset();
    if (refused != nullptr && settings_.threads > 0) std::rethrow_exception(refused);
  });
  asked_for_threads_ = true;
  return threads_.get();
}

}  // namespace ropewalk::collectives::nodes
