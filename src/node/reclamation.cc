#include "node/reclamation.hpp"

#include <mutex>
#include <utility>
#include <vector>

#include "node/peers.hpp"
#include "os/fork.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::node {
namespace {

struct Deferred {
  std::mutex mutex;
  std::vector<TeamMemory> teams;
};

// The teams of a parent are not its child's to end.
constinit os::PerProcess<Deferred> deferred;

// A process that has ended without leaving looks at nothing either.
bool has_left(const TeamMemory& team, int rank) {
  // Pairs with the release in Team::~Team() of that rank.
  return team.control->left(rank).load(std::memory_order_acquire) != 0 ||
         is_dead(*team.peers[static_cast<std::size_t>(rank)]);
}

bool all_have_left(const TeamMemory& team) {
  for (int rank = 0; rank < static_cast<int>(team.peers.size()); ++rank) {
    if (rank != team.rank && !has_left(team, rank)) return false;
  }
  return true;
}

void give_back(const TeamMemory& team) {
  Arena& arena = Arena::process();
  for (void* area : team.areas) arena.deallocate(area);
  arena.deallocate(team.control);
}

}  // namespace

void reclaim_later(TeamMemory team) noexcept {
  if (team.control == nullptr) return;
  {
    Deferred& all = deferred.get();
    const std::lock_guard lock(all.mutex);
    all.teams.push_back(std::move(team));
  }
  reclaim();
}

void reclaim() noexcept {
  Deferred& all = deferred.get();
  const std::lock_guard lock(all.mutex);
  std::erase_if(all.teams, [](const TeamMemory& team) {
    if (!all_have_left(team)) return false;
    give_back(team);
    return true;
  });
}

}  // namespace ropewalk::node
