// Deferred reclamation of a team's memory: it is kept until no other rank looks at it any more.
//
// A rank ends its team without waiting: the ranks of a program may free communicators in any order,
// and if freeing waited, a program could deadlock that does not with MPI alone.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "node/control.hpp"

namespace ropewalk::node {

struct Peer;

// This is memory of the process's arena; null is allowed for each part.
struct TeamMemory {
  Control* control;
  int rank;                                  // whose memory it is
  std::vector<std::shared_ptr<Peer>> peers;  // by rank: the others must have left, or ended
  std::array<void*, 3> areas;
};

void reclaim_later(TeamMemory) noexcept;
// Gives back what all others have left. Called by the two ends of every team; from any thread.
void reclaim() noexcept;

}  // namespace ropewalk::node
