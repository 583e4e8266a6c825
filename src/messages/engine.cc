#include "messages/engine.hpp"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "mpi/attributes.hpp"
#include "mpi/collectively.hpp"
#include "mpi/progress.hpp"
#include "node/machine_share.hpp"
#include "node/peers.hpp"
#include "node/rank_nodes.hpp"
#include "os/clock.hpp"
#include "os/cores.hpp"
#include "os/relax.hpp"
#include "os/waiting.hpp"

namespace ropewalk::messages {
namespace {

// This communicator is only needed while something is made.
struct ScopedComm {
  mpi::Comm comm = mpi::comm_null();
  ~ScopedComm() {
    if (comm != mpi::comm_null()) mpi::free(comm);
  }
};

// This is longer than the copy of any piece that a rank has claimed.
constexpr std::int64_t patience_ns = 1'000'000'000;

std::vector<int> ranks_on(const std::vector<int>& nodes, int node) {
  std::vector<int> ranks;
  for (int rank = 0; rank < static_cast<int>(nodes.size()); ++rank) {
    if (nodes[static_cast<std::size_t>(rank)] == node) ranks.push_back(rank);
  }
  return ranks;
}

void check_threads(int threads) {
  if (threads >= 1 && threads <= CopyThreads::most) return;
  throw Error(ErrorCode::argument, "threads: " + std::to_string(threads) + ", expected 1 to " +
                                       std::to_string(CopyThreads::most) +
                                       "; pass 1 for the caller alone");
}

// Starts the threads that copy with the caller. Collective; `near` is null where no rank is near.
Copiers start_copiers(mpi::Comm comm, const ChannelOptions& options, NearRanks* near,
                      const tuning::ChannelLimits& limits, std::unique_ptr<CopyThreads>& made) {
  if (mpi::true_on_all(comm, options.threads == 1)) return {};
  mpi::collectively(comm, [&] {
    if (near == nullptr || options.threads == 1) return;
    const bool more_than_cores = options.threads > static_cast<int>(os::process_cores().size());
    made = std::make_unique<CopyThreads>(options.threads,
                                         near->team().waits().crowded() || more_than_cores);
  });
  return {made.get(), true, options.force == Mechanism::threaded ? 0 : limits.threaded_bytes};
}

MessageOperation described(bool is_send, const void* data, std::size_t bytes, int peer, int tag) {
  MessageOperation operation;
  operation.is_send = is_send;
  operation.data = const_cast<std::byte*>(static_cast<const std::byte*>(data));
  operation.bytes = bytes;
  operation.peer = peer;
  operation.tag = tag;
  return operation;
}

// Stages a message to be sent, and gives it up where the device cannot copy it.
void stage_in(OperationPool& pool, MessageOperation& send) {
  try {
    stage(send);
  } catch (...) {
    pool.put(send);
    throw;
  }
}

// Finishes a message that both ranks have begun. The other rank copies, so it ends soon, unless
// that rank is dead. Once a third rank has died, the other one may not look any more. Then nothing
// more is copied, and copies that are under way get time to end.
void finish_with(MessageEngine& engine, const MessageOperation& operation, int place) {
  NearRanks& near = *engine.near();
  const std::int64_t begun = os::steady_ns();
  while (!operation.complete && !node::is_dead(near.team().peer(place)) && !near.has_ended(place)) {
    if (near.team().waits().broken()) {
      while (claim(operation.progress.transfer->unclaimed, End::back).count != 0) {
      }
      if (os::steady_ns() - begun > patience_ns) return;
    } else {
      engine.advance();
    }
    os::relax();
  }
}

int peer_of(const MessageOperation& operation) noexcept {
  return operation.is_send ? operation.peer : operation.status.source;
}

}  // namespace

std::shared_ptr<MessageEngine> MessageEngine::create(mpi::Comm comm,
                                                     const ChannelOptions& options) {
  std::shared_ptr<MessageEngine> engine;
  mpi::collectively(comm, [&] { check_threads(options.threads); });
  mpi::collectively(comm, [&] {
    engine.reset(new MessageEngine(comm));
    engine->meet(comm, options);
  });
  return engine;
}

MessageEngine::MessageEngine(mpi::Comm comm)
    : EngineKeeper(*this),
      rank_(mpi::rank(comm)),
      size_(mpi::size(comm)),
      posted_(size_),
      watch_(*this) {}

void MessageEngine::meet(mpi::Comm comm, const ChannelOptions& options) {
  const std::vector<int> nodes = node::nodes_of_ranks(comm);
  const std::vector<int> near = ranks_on(nodes, nodes[static_cast<std::size_t>(rank_)]);
  const bool all_near = static_cast<int>(near.size()) == size_;
  // Ranks on one node need no communicator of their own.
  ScopedComm node;
  if (!all_near &&
      !mpi::try_split(comm, nodes[static_cast<std::size_t>(rank_)], rank_, node.comm)) {
    throw Error(ErrorCode::mpi, "channel: MPI has no communicator left; free some");
  }
  const mpi::Comm near_comm = all_near ? comm : node.comm;
  limits_ = tuning::channel_limits(static_cast<int>(near.size()), false);
  devices_.look();
  mpi::collectively(near_comm, [&] {
    near_ = NearRanks::create(near_comm, near, size_,
                              {limits_.attach_bytes, limits_.by_kernel_bytes}, reach_.reason);
  });
  // Nodes that are parts of one machine share its cores.
  if (!all_near && node::crowding(comm, size_).here && near_ != nullptr) {
    near_->team().waits().share_cores();
  }
  const Copiers copiers = start_copiers(comm, options, near_.get(), limits_, copy_threads_);
  if (near_ != nullptr) serve_near(options.force, copiers);
  reach_.slot_bytes = limits_.slot_bytes;
  if (mpi::true_on_all(comm, near_ != nullptr && all_near)) return;
  std::string not_watched;
  liveness_ = node::Liveness::create(comm, not_watched);
  watch_.watch_far(liveness_.get());
  far_ = std::make_unique<Far>(comm, rank_, posted_);
  reach_.tag_bound = mpi::tag_upper_bound(comm);
}

void MessageEngine::serve_near(Mechanism force, const Copiers& copiers) {
  node::Waits& waits = near_->team().waits();
  limits_ = tuning::channel_limits(near_->size(), waits.crowded());
  if (force != Mechanism::none) {
    limits_.slot_bytes = force == Mechanism::slots ? slot_memory_bytes / 2 : Cell::payload_bytes;
    limits_.private_slot_bytes = limits_.slot_bytes;
  }
  waits.watch_with(&watch_);
  sending_ = std::make_unique<Sending>(*near_, limits_, devices_, copiers);
  receiving_ =
      std::make_unique<Receiving>(*near_, posted_, size_, limits_, force, devices_, copiers);
}

MessageEngine::~MessageEngine() {
  end();
  if (unwinding_ && far_ != nullptr) far_->leave();
  if (near_ != nullptr) near_->end();
}

// ---- calls

bool MessageEngine::receive_now(void* data, std::size_t bytes, int from, int tag, unsigned looks,
                                MessageStatus& status) {
  enter();
  watch_.require_whole();
  if (from == any_source || from == rank_ || !is_near(from) || !sending_->idle()) return false;
  if (devices_.context_of(data, bytes) != nullptr) return false;
  const int place = near_->place_of(from);
  for (unsigned look = 0; look < looks; ++look) {
    const Receiving::Look found =
        receiving_->receive_now(static_cast<std::byte*>(data), bytes, place, tag, status);
    if (found != Receiving::Look::nothing) return found == Receiving::Look::taken;
    os::relax();
  }
  return false;
}

void MessageEngine::send(const void* data, std::size_t bytes, int to, int tag) {
  MessageOperation* operation = start_send(data, bytes, to, tag);
  if (operation != nullptr) complete(*operation);
}

MessageStatus MessageEngine::receive(void* data, std::size_t bytes, int from, int tag) {
  MessageStatus status;
  // As long as a wait in the team spins, there is nothing else to do.
  if (receive_now(data, bytes, from, tag, limits_.spins, status)) return status;
  return complete(*start_receive(data, bytes, from, tag));
}

MessageOperation* MessageEngine::start_send(const void* data, std::size_t bytes, int to, int tag) {
  enter();
  watch_.require_whole();
  channel::DeviceContext* device = devices_.context_of(data, bytes);
  const std::size_t largest_slot = std::max(limits_.slot_bytes, limits_.private_slot_bytes);
  const bool to_peer = to != rank_ && is_near(to);
  if (to_peer && device == nullptr && sending_->send_now(data, bytes, near_->place_of(to), tag)) {
    return nullptr;
  }
  keep();
  MessageOperation& operation = pool_.take();
  operation = described(true, data, bytes, to, tag);
  operation.device = device;
  if (device != nullptr && (!to_peer || bytes <= largest_slot)) {
    stage_in(pool_, operation);
  }
  try {
    // Where one of them throws, the message is in no list.
    if (!is_near(to)) {
      far_->start_send(operation);
    } else if (to != rank_) {
      sending_->start(operation, near_->place_of(to));
    } else {
      receiving_->send_to_self(operation);
      operation.status = {rank_, tag, bytes};
      operation.complete = true;
    }
  } catch (...) {
    pool_.put(operation);
    throw;
  }
  return &operation;
}

MessageOperation* MessageEngine::start_receive(void* data, std::size_t bytes, int from, int tag) {
  keep();
  watch_.require_whole();
  channel::DeviceContext* device = devices_.context_of(data, bytes);
  MessageOperation& operation = pool_.take();
  operation = described(false, data, bytes, from, tag);
  operation.device = device;
  const bool may_be_near = from == any_source || is_near(from);
  try {
    if (near_ != nullptr && may_be_near && receiving_->take_unexpected(operation)) {
      return &operation;
    }
    posted_.add(operation);
    advance();
  } catch (...) {  // another message that moves on meanwhile may have failed, and will say so again
    if (operation.complete || (operation.listed && !operation.posted)) return &operation;
    // The caller gets no message, so nothing may be written to its buffer any more.
    withdraw(operation);
    throw;
  }
  return &operation;
}

std::optional<MessageStatus> MessageEngine::probe(int from, int tag) {
  enter();
  watch_.require_whole();
  advance();
  if (near_ != nullptr && (from == any_source || is_near(from))) {
    if (const auto found = receiving_->probe(from, tag)) return found;
  }
  std::optional<MessageStatus> found;
  if (far_ != nullptr && (from == any_source || !is_near(from))) {
    found = far_->probe(from, tag);
    // A message that has come since the advance above belongs to a receive that waits for it.
    while (found && posted_.match(found->source, found->tag) != nullptr) {
      far_->advance();
      found = far_->probe(from, tag);
    }
  }
  if (!found) watch_.tested(nullptr);
  return found;
}

// ---- waiting

void MessageEngine::advance() {
  if (near_ != nullptr) {
    sending_->advance();
    receiving_->advance();
  }
  if (far_ != nullptr) far_->advance();
}

bool MessageEngine::has_messages_under_way() const noexcept {
  if (!posted_.empty() || (far_ != nullptr && !far_->idle())) return true;
  return near_ != nullptr && (!sending_->idle() || !receiving_->idle());
}

bool MessageEngine::test(MessageOperation& operation) {
  keep();
  if (operation.complete) return true;
  advance();
  if (operation.complete) return true;
  watch_.tested(&operation);
  return operation.complete;
}

void MessageEngine::wait(MessageOperation& operation) {
  keep();
  const Wait waiting(*this);
  watch_.wait_for(&operation);
  const auto ready = [&] {
    advance();
    // Nobody wakes a rank that sleeps when its device is done; copies end by themselves.
    while (!operation.complete && devices_.is_copying()) {
      sched_yield();
      advance();
    }
    return operation.complete;
  };
  if (ready()) return;
  if (operation.peer == any_source ? near_ != nullptr : is_near(operation.peer)) {
    return near_->team().waits().until(ready);
  }
  os::Waiting wait(limits_.crowded ? os::wait_for_nodes_crowded : os::wait_for_nodes);
  while (!wait.poll(ready)) {
    if (!wait.spins()) mpi::look_also();
    if (wait.look_due()) watch_.look();
    wait.pause();
  }
}

// For the calls that return when their message is complete.
MessageStatus MessageEngine::complete(MessageOperation& operation) {
  try {
    if (!operation.complete) wait(operation);
  } catch (...) {
    withdraw(operation);
    throw;
  }
  return finish(operation);
}

MessageStatus MessageEngine::finish(MessageOperation& operation) {
  const MessageStatus status = operation.status;
  const std::optional<Error> error = std::move(operation.error);
  pool_.put(operation);
  // What was attached stays so while any message may still be copied to or from it.
  if (near_ != nullptr && sending_->idle() && receiving_->idle()) near_->memory().end_call();
  if (error) throw Error(*error);
  return status;
}

void MessageEngine::withdraw(MessageOperation& operation) noexcept {
  enter();
  const Wait waiting(*this);
  watch_.wait_for(nullptr);
  try {
    if (!operation.complete) take_back(operation);
  } catch (...) {  // MPI's, which a later call will tell again
    // No list may have it when it is used again; what is with MPI is lost.
    if (near_ == nullptr || !is_near(peer_of(operation))) return;
    operation.is_send ? sending_->forget(operation) : receiving_->forget(operation);
  }
  pool_.put(operation);
}

void MessageEngine::take_back(MessageOperation& operation) {
  if (operation.posted) return posted_.remove(operation);
  if (!operation.listed) return;  // nothing of it is under way
  const int peer = peer_of(operation);
  if (!is_near(peer)) return far_->withdraw(operation);
  const int place = near_->place_of(peer);
  if (operation.is_send && sending_->withdraw(operation, place)) return;
  finish_with(*this, operation, place);
  if (operation.complete) return;
  operation.is_send ? sending_->forget(operation) : receiving_->forget(operation);
}

}  // namespace ropewalk::messages
