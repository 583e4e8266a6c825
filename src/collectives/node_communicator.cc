// A NodeCommunicator comes to be, and the reductions it offers.
#include <cstring>

#include "collectives/algorithms.hpp"
#include "collectives/checks.hpp"
#include "collectives/datatypes.hpp"
#include "collectives/nodes/algorithms.hpp"
#include "collectives/reductions.hpp"
#include "collectives/state.hpp"
#include "collectives/through_mpi.hpp"
#include "mpi/joint.hpp"
#include "mpi/settings.hpp"
#include "node/machine_share.hpp"
#include "node/node_number.hpp"
#include "settings/shared.hpp"

namespace ropewalk {

namespace {

// Tables of one entry a rank must fit a slot (gather.cc, alltoall.cc).
constexpr int largest_team = 128;

// Collective: the number of each rank's node. Error(argument) on every rank where ROPEWALK_NODES of
// one is malformed, or where a setting that must be the same on all ranks is not.
std::vector<int> exchange_nodes(mpi::Comm comm, int size) {
  struct Fact {
    char name[128];
    std::int64_t malformed;
    std::uint64_t settings;  // their fingerprint
  };
  Fact own{};
  own.settings = settings::fingerprint();
  std::string malformed;
  try {
    const std::string name = node::node_name();
    std::memcpy(own.name, name.data(), std::min(name.size(), sizeof own.name - 1));
  } catch (const Error& error) {
    own.malformed = 1;
    malformed = error.what();
  }
  std::vector<Fact> facts(static_cast<std::size_t>(size));
  mpi::all_gather(&own, facts.data(), sizeof own, comm);
  std::vector<std::uint64_t> fingerprints;
  fingerprints.reserve(facts.size());
  for (const Fact& fact : facts) fingerprints.push_back(fact.settings);
  mpi::require_same_settings(comm, fingerprints);
  std::vector<std::string> names;
  for (const Fact& fact : facts) {
    if (fact.malformed != 0) {
      throw Error(ErrorCode::argument,
                  malformed.empty() ? "ROPEWALK_NODES: malformed on another rank" : malformed);
    }
    names.emplace_back(fact.name);
  }
  return node::number_nodes(names);
}

// Collective: the engine of one node, the hierarchy of several, or neither.
void join(NodeCommunicator::State& state, int threads) {
  const collectives::nodes::Layout layout =
      collectives::nodes::layout_of(exchange_nodes(state.comm, state.size), state.rank);
  if (layout.most > largest_team) {
    state.reason = "more than " + std::to_string(largest_team) + " ranks on a node";
  } else if (layout.count() == 1) {
    state.engine = collectives::Engine::create(state.comm, state.reason, state.attach_reason);
  } else {
    state.nodes = collectives::nodes::Nodes::create(state.comm, layout, threads, state.reason,
                                                    state.attach_reason);
    const node::Crowding crowding = node::crowding(state.comm, state.size);
    if (state.nodes == nullptr) return;
    state.nodes->crowded = crowding.anywhere;
    if (crowding.here) state.nodes->share_cores();
  }
}

}  // namespace

const char* name(Path path) {
  constexpr const char* names[] = {"none", "inlined", "mapped", "cma", "staged", "nodes", "mpi"};
  return names[static_cast<int>(path)];
}

NodeCommunicator::NodeCommunicator(Communicator communicator,
                                   const NodeCommunicatorOptions& options) {
  const mpi::Comm comm{communicator.handle()};
  mpi::jointly(comm, [&] {
    state_.reset(new State);
    state_->comm = comm;
    state_->rank = mpi::rank(comm);
    state_->size = mpi::size(comm);
    join(*state_, options.threads);
  });
}

NodeCommunicator::~NodeCommunicator() {
  if (state_ == nullptr) return;
  state_->worker.drain();
  // An exception takes this rank away: the others would wait in their next call.
  if (std::uncaught_exceptions() > state_->exceptions_before) collectives::leave(*state_);
}
// Jobs of the worker know the object they were started on, so they end before it moves.
NodeCommunicator::NodeCommunicator(NodeCommunicator&& other) noexcept {
  if (other.state_ != nullptr) other.state_->worker.drain();
  state_ = std::move(other.state_);
}
NodeCommunicator& NodeCommunicator::operator=(NodeCommunicator&& other) noexcept {
  if (state_ != nullptr) state_->worker.drain();
  if (other.state_ != nullptr) other.state_->worker.drain();
  state_ = std::move(other.state_);
  return *this;
}

int NodeCommunicator::rank() const noexcept { return state_->rank; }
int NodeCommunicator::size() const noexcept { return state_->size; }
bool NodeCommunicator::direct() const noexcept { return nodes() != 0; }
int NodeCommunicator::nodes() const noexcept {
  if (state_->nodes != nullptr) return state_->nodes->layout().count();
  return state_->engine != nullptr ? 1 : 0;
}
const std::string& NodeCommunicator::reason() const noexcept { return state_->reason; }
Path NodeCommunicator::last_path() const noexcept {
  if (state_->nodes != nullptr) return state_->nodes->path;
  return state_->engine != nullptr ? state_->engine->path : Path::mpi;
}
bool NodeCommunicator::attaches() const noexcept {
  return state_->engine != nullptr && state_->engine->memory().attaches();
}
const std::string& NodeCommunicator::attach_reason() const noexcept {
  return state_->attach_reason;
}
int NodeCommunicator::reduction_threads() const noexcept {
  return state_->nodes != nullptr ? state_->nodes->reduction_threads() : 1;
}
RegistrationCounts NodeCommunicator::registrations() const {
  if (!attaches()) return {};
  const auto counts = channel::process_cache().counts();
  return {counts.hits, counts.misses, counts.evictions, counts.entries};
}

namespace collectives {

void reduce(NodeCommunicator::State& state, const void* send, void* receive, std::size_t count,
            const Operation& operation, int root) {
  const std::size_t bytes = bytes_of(state, count, operation.element_bytes);
  const bool has_output = root < 0 || root == state.rank;
  if (is_in_place(send)) {
    if (!has_output)
      refuse(state, "send: in place is for the root alone; pass this rank's elements");
    send = receive;
  }
  check_buffer(state, send, bytes, "send");
  if (has_output) check_buffer(state, receive, bytes, "receive");
  if (count == 0 && state.size == 1) return;
  if (state.nodes != nullptr) {
    nodes::reduce(state, send, receive, count, operation, root);
  } else if (state.engine == nullptr) {
    mpi_reduce(state, send, receive, count, operation, root);
  } else if (state.size == 1) {
    if (send != receive) std::memcpy(receive, send, bytes);
    state.engine->path = Path::none;
  } else {
    reduce(*state.engine, send, receive, count, operation, root);
  }
}

void scan(NodeCommunicator::State& state, const void* send, void* receive, std::size_t count,
          const Operation& operation, bool exclusive) {
  const std::size_t bytes = bytes_of(state, count, operation.element_bytes);
  if (is_in_place(send)) send = receive;
  check_buffer(state, send, bytes, "send");
  if (!exclusive || state.rank > 0) check_buffer(state, receive, bytes, "receive");
  if (state.nodes != nullptr) {
    nodes::scan(state, send, receive, count, operation, exclusive);
  } else if (state.engine == nullptr) {
    mpi_scan(state, send, receive, count, operation, exclusive);
  } else if (state.size == 1) {
    if (send != receive && !exclusive && bytes > 0) std::memcpy(receive, send, bytes);
    state.engine->path = Path::none;
  } else {
    scan(*state.engine, send, receive, count, operation, exclusive);
  }
}

void reduce_scatter(NodeCommunicator::State& state, const void* send, void* receive,
                    const std::size_t* counts, const Operation& operation) {
  check_counts(state, counts, "counts");
  std::size_t total = 0;
  for (int peer = 0; peer < state.size; ++peer) {
    total += counts[peer];
    if (total < counts[peer]) refuse(state, "counts: their sum overflows");
  }
  const std::size_t bytes = bytes_of(state, total, operation.element_bytes);
  if (is_in_place(send)) send = receive;
  check_buffer(state, send, bytes, "send");
  check_buffer(state, receive, counts[state.rank] * operation.element_bytes, "receive");
  if (state.nodes != nullptr) {
    nodes::reduce_scatter(state, send, receive, counts, operation);
  } else if (state.engine == nullptr) {
    mpi_reduce_scatter(state, send, receive, counts, operation);
  } else if (state.size == 1) {
    if (send != receive && bytes > 0) std::memcpy(receive, send, bytes);
    state.engine->path = Path::none;
  } else {
    reduce_scatter(*state.engine, send, receive, counts, operation);
  }
}

const Operation& checked_operation(NodeCommunicator::State& state, ElementType type,
                                   ReductionOp op) {
  try {
    return operation(type, op);
  } catch (const Error&) {
    // The others must not wait for this rank's call.
    tell_refusal(state);
    throw;
  }
}

}  // namespace collectives

using collectives::checked_operation;

void NodeCommunicator::allreduce(const void* send, void* receive, std::size_t count,
                                 ElementType type, ReductionOp op) {
  state_->run([&] {
    collectives::reduce(*state_, send, receive, count, checked_operation(*state_, type, op), -1);
  });
}

void NodeCommunicator::reduce(const void* send, void* receive, std::size_t count, ElementType type,
                              ReductionOp op, int root) {
  state_->run([&] {
    collectives::check_root(*state_, root);
    collectives::reduce(*state_, send, receive, count, checked_operation(*state_, type, op), root);
  });
}

void NodeCommunicator::scan(const void* send, void* receive, std::size_t count, ElementType type,
                            ReductionOp op) {
  state_->run([&] {
    collectives::scan(*state_, send, receive, count, checked_operation(*state_, type, op), false);
  });
}

void NodeCommunicator::exscan(const void* send, void* receive, std::size_t count, ElementType type,
                              ReductionOp op) {
  state_->run([&] {
    collectives::scan(*state_, send, receive, count, checked_operation(*state_, type, op), true);
  });
}

void NodeCommunicator::reduce_scatter(const void* send, void* receive, const std::size_t* counts,
                                      ElementType type, ReductionOp op) {
  state_->run([&] {
    collectives::reduce_scatter(*state_, send, receive, counts,
                                checked_operation(*state_, type, op));
  });
}

void NodeCommunicator::reduce_scatter_block(const void* send, void* receive, std::size_t count,
                                            ElementType type, ReductionOp op) {
  state_->run([&] {
    const std::vector<std::size_t> counts(state_->size, count);
    reduce_scatter(send, receive, counts.data(), type, op);
  });
}

}  // namespace ropewalk
