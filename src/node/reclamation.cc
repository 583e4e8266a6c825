#include "node/reclamation.hpp"

#include <mutex>
#include <vector>

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

bool all_have_left(const TeamMemory& team) {
  // Pairs with the release in Team::~Team() of the others.
  return team.others == 0 || team.control->left.load(std::memory_order_acquire) >= team.others;
}

void give_back(const TeamMemory& team) {
  Arena& arena = Arena::process();
  for (void* area : team.areas) arena.deallocate(area);
  arena.deallocate(team.control);
}

}  // namespace

void reclaim_later(const TeamMemory& team) noexcept {
  if (team.control == nullptr) return;
  {
    Deferred& all = deferred.get();
    const std::lock_guard lock(all.mutex);
    all.teams.push_back(team);
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
