#include "collectives/patience.hpp"

#include <string>

#include "os/clock.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::collectives {
namespace {

constexpr std::int64_t ns_per_s = 1'000'000'000;

// Returns a text such as "rank 1" or "ranks 1 and 2", which is empty where all have come.
std::string missing_ranks(node::Team& team) {
  std::string text;
  int count = 0;
  for (int rank = 0; rank < team.size(); ++rank) {
    if (rank == team.rank() || team.slots().has_arrived(rank)) continue;
    text += (count++ == 0 ? "" : " and ") + std::to_string(rank);
  }
  return count == 0 ? "" : (count == 1 ? "rank " : "ranks ") + text;
}

}  // namespace

Patience::Patience(node::Team& team, int timeout_s) : team_(team), timeout_s_(timeout_s) {
  team_.waits().watch_with(this);
}

void Patience::look() {
  const std::uint64_t call = team_.slots().calls();
  const std::int64_t now = os::steady_ns();
  if (call != call_) {
    call_ = call;
    since_ns_ = now;
    return;
  }
  if (now - since_ns_ < timeout_s_ * ns_per_s) return;
  std::string missing = missing_ranks(team_);
  missing += missing.empty() ? "a rank has not finished" : " has not come to";
  team_.waits().give_up();
  throw Error(ErrorCode::peer_dead,
              "time-out: " + missing + " collective " + std::to_string(call) +
                  " of this communicator within " + std::to_string(timeout_s_) +
                  " s; look at what it does, or allow more time. The communicator cannot be used "
                  "any more");
}

}  // namespace ropewalk::collectives
