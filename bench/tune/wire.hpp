// These functions measure messages between nodes: what the wire costs by itself, and whether
// several lanes make it faster.
#pragma once

#include <cstddef>
#include <vector>

#include "tune/copies.hpp"
#include "tune/places.hpp"
#include "tune/search.hpp"

namespace ropewalk::bench {

// Collective. Returns the times of one message between two nodes (subject `wire`): from one rank to
// another (`one_way`), the same in both directions at once (`both_ways`), and from each rank of a
// node to its opposite on the other node at once (`all_ranks`). All pairs of nodes are at work.
std::vector<TuneCost> wire_costs(const Ranks& ranks, const NodePlaces& places, std::size_t largest,
                                 const Effort& effort);

// What several lanes give: the number of lanes, and the size above which a message is split over
// them. `splitting.value` is `never` where one lane is as fast.
struct LanesFound {
  static constexpr std::size_t never = std::size_t{1} << 40;
  int lanes = 1;
  Finding splitting;
  std::vector<TuneCost> costs;  // of messages over 1, 2, ... lanes
};
// Collective; with comm threads, so MPI_THREAD_MULTIPLE is needed.
LanesFound find_lanes(const Ranks& ranks, const NodePlaces& places, std::size_t largest,
                      const Effort& effort);

// Returns how many samples each takes: the calls of in_turns(), each counted once for each way.
int samples_of_wire(std::size_t largest);
int samples_of_lanes(std::size_t largest);

}  // namespace ropewalk::bench
