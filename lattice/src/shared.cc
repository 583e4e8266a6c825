#include "shared.hpp"

namespace ropewalk::lattice::detail {

namespace {

// Ranks of a node share out its cores; one thread needs to know nothing of the others.
std::shared_ptr<ThreadTeam> make_team(const Lattice& lattice, int threads) {
  if (threads == 1 || lattice.size() == 1)
    return std::make_shared<ThreadTeam>(ThreadTeamOptions{threads, threads > 1});
  return std::make_shared<ThreadTeam>(lattice.grid().communicator(), ThreadTeamOptions{threads});
}

}  // namespace

std::shared_ptr<ThreadTeam> Shared::team(const Lattice& lattice, int threads) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<ThreadTeam>& known = teams_[threads];
  std::shared_ptr<ThreadTeam> out = known.lock();
  if (!out) known = out = make_team(lattice, threads);
  return out;
}

Strategy Shared::strategy(std::size_t bytes) const {
  constexpr std::size_t about = 8;  // halves and wholes, float and double, but not 16 slices
  const std::lock_guard lock(mutex_);
  const auto near = strategies_.lower_bound(bytes / about);
  return near == strategies_.end() || near->first > bytes * about ? Strategy::automatic
                                                                  : near->second;
}

void Shared::keep(std::size_t bytes, Strategy chosen) {
  const std::lock_guard lock(mutex_);
  strategies_[bytes] = chosen;
}

}  // namespace ropewalk::lattice::detail
