#include "collectives/patience.hpp"

#include <string>

#include "node/peers.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::collectives {
namespace {

// Returns a text such as "rank 1", or "rank 1 (process 4711, which is stopped)".
std::string described(const node::Team& team, int rank) {
  std::string text = "rank " + std::to_string(rank);
  if (!node::is_stopped(team.peer(rank))) return text;
  return text + " (process " + std::to_string(team.process_id(rank)) + ", which is stopped)";
}

// Returns the ranks that match and a verb, as in "rank 1 and rank 2 have", or an empty text.
template <class Match>
std::string ranks_that(const node::Team& team, Match match) {
  std::string text;
  int count = 0;
  for (int rank = 0; rank < team.size(); ++rank) {
    if (rank == team.rank() || !match(rank)) continue;
    text += (count++ == 0 ? "" : " and ") + described(team, rank);
  }
  return count == 0 ? "" : text + (count == 1 ? " has" : " have");
}

// Says which ranks this one waits for. A rank that has come may be stopped before its end. For the
// others it is not known: their parts depend on each other.
std::string who_is_missing(node::Team& team) {
  const std::string absent =
      ranks_that(team, [&](int rank) { return !team.slots().has_arrived(rank); });
  if (!absent.empty()) return absent + " not come to";
  const std::string stopped =
      ranks_that(team, [&](int rank) { return node::is_stopped(team.peer(rank)); });
  return (stopped.empty() ? "a rank has" : stopped) + " not finished";
}

}  // namespace

Patience::Patience(node::Team& team, int timeout_s) : team_(team), timeout_(timeout_s) {
  team_.waits().watch_with(this);
}

void Patience::look() {
  const std::uint64_t call = team_.slots().calls();
  if (!timeout_.is_over(call)) return;
  const std::string missing = who_is_missing(team_);
  team_.waits().give_up();
  throw Error(ErrorCode::peer_dead,
              missing + " collective " + std::to_string(call) +
                  " of this communicator within the timeout of " +
                  std::to_string(timeout_.seconds()) +
                  " s; look at what happens there, or allow more time. The communicator cannot be "
                  "used any more");
}

}  // namespace ropewalk::collectives
