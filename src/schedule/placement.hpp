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

Placement place_alone(const ThreadTeamOptions& options);
Placement place_together(Communicator, const ThreadTeamOptions& options);  // collective

}  // namespace ropewalk::schedule
