// How a Collectives comes to be and ends, and what it says of itself. Its calls are in
// reductions.cc and movements.cc.
#include <exception>
#include <utility>

#include "channel/attachments.hpp"
#include "collectives/engine.hpp"
#include "collectives/nodes/nodes.hpp"
#include "collectives/state.hpp"
#include "mpi/collectively.hpp"

namespace ropewalk {

const char* name(Path path) {
  constexpr const char* names[] = {"none", "inlined", "mapped", "cma", "staged", "nodes", "mpi"};
  return names[static_cast<int>(path)];
}

Collectives::Collectives(Communicator communicator, const CollectivesOptions& options) {
  const mpi::Comm comm{communicator.handle()};
  mpi::collectively(comm, [&] {
    state_.reset(new State);
    state_->rank = mpi::rank(comm);
    state_->size = mpi::size(comm);
    state_->backend = collectives::make_backend(comm, options, state_->facts);
  });
}

Collectives::~Collectives() {
  if (state_ == nullptr) return;
  state_->worker.drain();
  // An exception takes this rank away: the others would wait in their next call.
  if (state_->unwinding) state_->backend->leave_for_good();
}
// Jobs of the worker know the object they were started on, so they end before it moves.
Collectives::Collectives(Collectives&& other) noexcept {
  if (other.state_ != nullptr) other.state_->worker.drain();
  state_ = std::move(other.state_);
}
Collectives& Collectives::operator=(Collectives&& other) noexcept {
  if (state_ != nullptr) state_->worker.drain();
  if (other.state_ != nullptr) other.state_->worker.drain();
  state_ = std::move(other.state_);
  return *this;
}

int Collectives::rank() const noexcept { return state_->rank; }
int Collectives::size() const noexcept { return state_->size; }
bool Collectives::direct() const noexcept { return nodes() != 0; }
int Collectives::nodes() const noexcept { return state_->backend->nodes(); }
const std::string& Collectives::reason() const noexcept { return state_->facts.reason; }
Path Collectives::last_path() const noexcept { return state_->backend->path(); }
bool Collectives::attaches() const noexcept {
  collectives::Engine* engine = state_->backend->engine();
  return nodes() == 1 && engine != nullptr && engine->memory().attaches();
}
const std::string& Collectives::attach_reason() const noexcept {
  return state_->facts.attach_reason;
}
int Collectives::reduction_threads() const noexcept {
  const collectives::nodes::Nodes* hierarchy = state_->backend->hierarchy();
  return hierarchy != nullptr ? hierarchy->reduction_threads() : 1;
}
// Over nodes, private buffers are attached inside each node.
RegistrationCounts Collectives::registrations() const {
  collectives::Engine* engine = state_->backend->engine();
  if (engine == nullptr || !engine->memory().attaches()) return {};
  const auto counts = channel::process_cache().counts();
  return {counts.hits, counts.misses, counts.evictions, counts.entries};
}

// The worker's: a call that could not be prepared. What is thrown only says that others have died,
// which they know.
void Collectives::State::refuse(void* state) noexcept {
  try {
    static_cast<State*>(state)->backend->refuse("");
  } catch (...) {
  }
}

}  // namespace ropewalk
