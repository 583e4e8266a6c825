// This file turns the arguments of persistent collectives into what each rank sends and receives in
// a round. A plan is none where MPI must serve the call.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "functions.hpp"
#include "neighbour_sides.hpp"
#include "neighbourhood.hpp"
#include "persistent.hpp"

namespace ropewalk::preload {

// Blocks of one type; the counts and the places are in elements of it.
struct BlockArguments {
  const void* data;
  Word type;
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> places;
};
// Blocks of one length, side by side.
template <class Number>
BlockArguments equal_blocks(const void* data, Number count, Word type, int blocks) {
  BlockArguments made{data, type, {}, {}};
  for (int k = 0; k < blocks; ++k) {
    made.counts.push_back(count);
    made.places.push_back(static_cast<std::int64_t>(k) * count);
  }
  return made;
}
template <class Number>
BlockArguments any_blocks(const void* data, const Number* counts, const Number* displacements,
                          Word type, int blocks) {
  if (blocks == 0) return {data, type, {}, {}};
  if (counts == nullptr || displacements == nullptr) return equal_blocks(data, -1, type, 1);
  return {data, type, {counts, counts + blocks}, {displacements, displacements + blocks}};
}

// An argument that is none is in place, or is one that this rank does not give.
using OptionalBlocks = std::optional<BlockArguments>;
using OptionalPlan = std::optional<RoundPlan>;
OptionalPlan plan_barrier(const Collectives&);
OptionalPlan plan_broadcast(const Collectives&, const BlockArguments& data, int root);
OptionalPlan plan_allgather(const Collectives&, const OptionalBlocks& send,
                            const BlockArguments& receive);
OptionalPlan plan_gather(const Collectives&, const OptionalBlocks& send,
                         const OptionalBlocks& receive, int root);
OptionalPlan plan_scatter(const Collectives&, const OptionalBlocks& send,
                          const OptionalBlocks& receive, int root);
OptionalPlan plan_alltoall(const Collectives&, const OptionalBlocks& send,
                           const BlockArguments& receive);

OptionalPlan plan_alltoallw(const Collectives&, const std::shared_ptr<const AlltoallwSides>&);

// What lies beside blocks of neighbours that are not there means nothing.
OptionalPlan plan_neighbours(const Neighbourhood&, BlockArguments send, BlockArguments receive);
OptionalPlan plan_neighbours(const Neighbourhood&,
                             const std::shared_ptr<const TypedNeighbourSides>&);

struct ReductionArguments {
  const void* send;
  void* receive;
  Word type;
  Word op;
};
OptionalPlan plan_allreduce(const Collectives&, const ReductionArguments&, std::int64_t count);
OptionalPlan plan_reduce(const Collectives&, const ReductionArguments&, std::int64_t count,
                         int root);
// This rank's result is that of the first `inputs` ranks.
OptionalPlan plan_scan(const Collectives&, const ReductionArguments&, std::int64_t count,
                       int inputs);
// `counts`: how many elements of the result each rank gets, of consecutive parts.
OptionalPlan plan_reduce_scatter(const Collectives&, const ReductionArguments&,
                                 std::span<const std::int64_t> counts);

}  // namespace ropewalk::preload
