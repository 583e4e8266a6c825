// How many threads a team has, and on which cores.
#pragma once

#include <span>
#include <vector>

#include "ropewalk/communicator.hpp"
#include "ropewalk/schedule.hpp"

namespace ropewalk::schedule {

struct Placement {
  int threads = 1;
  bool crowded = false;    // threads, of all ranks that use these cores, outnumber them
  std::vector<int> cores;  // of each thread; empty: wherever the kernel likes
};

// Is a pure function. `neighbours` ranks may use `cores`; this one is number `position` of them.
Placement place(std::span<const int> cores, int position, int neighbours, int quota,
                const ThreadTeamOptions& options);

// So many ranks have agreed where they put their threads.
struct RanksAsked {
  int here;        // on this node
  int everywhere;  // on all nodes
};
// Whether other ranks of the job on this node may have the same cores, and put their threads there,
// unseen by those that were asked.
bool has_strangers(const RanksAsked&);

Placement place_alone(const ThreadTeamOptions& options);
Placement place_together(Communicator, const ThreadTeamOptions& options);  // collective

}  // namespace ropewalk::schedule
