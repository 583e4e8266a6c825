#include "collectives/engine.hpp"

#include <algorithm>
#include <cstring>
#include <utility>

#include "channel/attachments.hpp"

namespace ropewalk::collectives {
namespace {

// Whether nobody waits for the owners of these buffers: all are copies, and none was postponed that
// may have been written into a receive buffer instead.
bool all_copied(const std::vector<Shown>& shown) noexcept {
  return std::ranges::all_of(
      shown, [](const Shown& rank) { return rank.copied != 0 && rank.postponed == 0; });
}

}  // namespace

std::unique_ptr<Engine> Engine::create(mpi::Comm comm, std::string& reason,
                                       std::string& attach_reason) {
  auto team = node::Team::create(comm, reason);
  if (team == nullptr) return nullptr;
  const Limits limits = limits_for(team->size(), team->waits().crowded());
  auto attachments = channel::Attachments::create(*team, attach_reason);
  auto engine = std::make_unique<Engine>(std::move(team), limits);
  engine->memory_.attach_with(std::move(attachments));
  return engine;
}

Engine::Engine(std::unique_ptr<node::Team> team, Limits limits)
    : inputs(team->size()),
      outputs(team->size()),
      memory_(*team, {limits.attach_bytes, limits.cma_bytes}),
      team_(std::move(team)),
      limits_(limits),
      rank_(team_->rank()),
      size_(team_->size()),
      arrivals_(*team_),
      duties_(*team_),
      copies_(*team_, arrivals_, memory_, scratch_, limits_, path),
      shown_(team_->size()) {}

void Engine::share_cores() {
  team_->waits().share_cores();
  limits_ = limits_for(size_, true);
}

const std::vector<Shown>& Engine::meet(node::Slot& own, const Shown& shown) {
  std::memcpy(own.payload, &shown, sizeof shown);
  team_->slots().arrive();
  if (shown.postponed == 0) copies_.add_rest();
  const auto& all = collect(own);
  if (shown.postponed == 0) return all;
  const auto reads_copy = [this](const Shown& rank) {
    return &rank != &shown_[rank_] && !rank.receive.is_visible();
  };
  if (std::ranges::any_of(all, reads_copy)) copies_.add_rest();
  copies_.forget();
  path = Path::mapped;
  return all;
}

const std::vector<Shown>& Engine::collect(const node::Slot& own) {
  for (int peer = 0; peer < size_; ++peer) {
    const node::Slot& slot = peer == rank_ ? own : arrivals_.of(peer, own);
    std::memcpy(&shown_[peer], slot.payload, sizeof(Shown));
  }
  team_->slots().all_arrived();
  arrivals_.check(own);
  duties_.owe_phases();
  return shown_;
}

void Engine::leave(bool complete) {
  const std::uint64_t phase = duties_.finish(complete);
  memory_.end_call();
  duties_.check_complete(phase);
}

void Engine::leave(const std::vector<Shown>& shown, bool complete) {
  if (!all_copied(shown)) return leave(complete);
  duties_.owe_nothing();
  team_->phases().skip();
}

void Engine::give_back() noexcept {
  scratch_.release();
  memory_.end_call();
}

// All others leave the call, too, and find that this rank has not done its part.
void Engine::give_up() {
  copies_.add_rest();  // others wait for it
  leave(false);
  duties_.throw_unreadable();  // not reached: this rank is among those that failed
}

void Engine::rescue(std::uint64_t before) noexcept {
  arrivals_.forget();
  if (size_ == 1 || team_->waits().broken()) {
    duties_.owe_nothing();
    copies_.forget();
    return;
  }
  const bool claimed = team_->slots().calls() != before;
  try {
    if (claimed && team_->slots().has_arrived()) copies_.add_rest();  // others wait for it
    copies_.forget();
    if (!claimed) {
      arrivals_.refuse();
    } else if (!team_->slots().has_arrived()) {
      arrivals_.refuse_claimed();
    } else {
      duties_.settle(all_copied(shown_));
    }
  } catch (...) {  // a rank has died: the others learn it as this one does
  }
  duties_.owe_nothing();
  give_back();
}

}  // namespace ropewalk::collectives
