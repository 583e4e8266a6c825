#include "shared.hpp"

#include <optional>

#include "agree.hpp"

namespace ropewalk::lattice::detail {

namespace {

// Ranks may have different numbers of threads, and one may have a team that others lack: a new one
// is made together where any rank wants it to be.
bool any_rank(const Lattice& lattice, bool wants) {
  if (lattice.size() == 1) return wants;
  const int own = wants ? 1 : 0;
  int any = 0;
  meet(lattice);
  lattice.collectives().allreduce(&own, &any, 1, ElementType::int32, ReductionOp::max);
  return any != 0;
}

// Ranks of a node share out its cores; one thread needs to know nothing of the others.
std::shared_ptr<ThreadTeam> make_team(const Lattice& lattice, int threads, bool together) {
  if (!together || lattice.size() == 1) {
    return std::make_shared<ThreadTeam>(ThreadTeamOptions{threads, threads > 1});
  }
  const auto made = std::make_shared<std::optional<ThreadTeam>>();
  meet(lattice);
  made->emplace(lattice.grid().communicator(), ThreadTeamOptions{threads});
  return {made, &**made};
}

}  // namespace

std::shared_ptr<ThreadTeam> Shared::team(const Lattice& lattice, int threads) {
  const std::lock_guard lock(mutex_);
  std::weak_ptr<ThreadTeam>& known = teams_[threads];
  std::shared_ptr<ThreadTeam> out = known.lock();
  const bool together = any_rank(lattice, !out && threads > 1);
  if (out && !together) return out;
  const std::shared_ptr<ThreadTeam> made = make_team(lattice, threads, together);
  if (!out) known = out = made;
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
