#include "persistent_plans.hpp"

#include <algorithm>
#include <numeric>

#include "collectives/datatypes.hpp"
#include "collectives/range.hpp"
#include "datatypes.hpp"
#include "sides.hpp"

namespace ropewalk::preload {
namespace {

using View = std::shared_ptr<KeptBlocks>;

// Returns null where MPI must judge the arguments.
View view_of(const BlockArguments& given) {
  constexpr std::int64_t none = 0;  // a rank without neighbours gives no numbers
  const auto blocks = static_cast<int>(given.counts.size());
  const Sides sides(given.data, blocks == 0 ? &none : given.counts.data(),
                    blocks == 0 ? &none : given.places.data(), given.type, blocks);
  return sides.usable() ? std::make_shared<KeptView>(sides.buffers(), blocks) : nullptr;
}

SentBlock sent(const KeptBlocks& view, std::size_t block) {
  return {view.data(block), view.bytes(block)};
}
constexpr SentBlock nothing{nullptr, 0};

// Adds the block that `from` sends to this rank.
void add_received(RoundPlan& plan, const Collectives& team, int from, const KeptBlocks& view,
                  std::size_t block) {
  plan.received.push_back(
      {from, static_cast<std::size_t>(team.rank()), view.data(block), view.bytes(block)});
}

std::vector<std::int64_t> for_all(const Collectives& team, std::int64_t count) {
  return std::vector<std::int64_t>(static_cast<std::size_t>(team.size()), count);
}

std::size_t index(int rank) { return static_cast<std::size_t>(rank); }
bool is_rank(const Collectives& team, int rank) { return rank >= 0 && rank < team.size(); }

}  // namespace

OptionalPlan plan_barrier(const Collectives&) {
  RoundPlan plan;
  plan.waits_for_all = true;
  return plan;
}

OptionalPlan plan_broadcast(const Collectives& team, const BlockArguments& data, int root) {
  const View view = view_of(data);
  if (view == nullptr || !is_rank(team, root)) return std::nullopt;
  RoundPlan plan;
  const bool sends = team.rank() == root;
  plan.sent.assign(index(team.size()), sends ? sent(*view, 0) : nothing);
  (sends ? plan.packed : plan.unpacked) = view;
  if (!sends) add_received(plan, team, root, *view, 0);
  const std::size_t bytes = view->bytes(0);
  const collectives::Range own =
      collectives::slice(bytes, team.rank(), team.size(), node::flag_stride);
  plan.shared = SharedReduction{view->data(0), sends ? bytes : 0,
                                view->data(0), sends ? 0 : bytes,
                                own.begin,     own.begin,
                                own.length(),  SharedReduction::everybody,
                                std::nullopt,  root};
  return plan;
}

OptionalPlan plan_allgather(const Collectives& team, const OptionalBlocks& send,
                            const BlockArguments& receive) {
  const View to = view_of(receive);
  const View from = send ? view_of(*send) : to;
  if (to == nullptr || from == nullptr) return std::nullopt;
  RoundPlan plan;
  plan.packed = from;
  plan.unpacked = to;
  plan.sent.assign(index(team.size()), sent(*from, send ? 0 : index(team.rank())));
  for (int rank = 0; rank < team.size(); ++rank) add_received(plan, team, rank, *to, index(rank));
  return plan;
}

OptionalPlan plan_gather(const Collectives& team, const OptionalBlocks& send,
                         const OptionalBlocks& receive, int root) {
  if (!is_rank(team, root)) return std::nullopt;
  const View to = receive ? view_of(*receive) : nullptr;
  const View from = send ? view_of(*send) : to;
  if (from == nullptr || (receive && to == nullptr)) return std::nullopt;
  RoundPlan plan;
  plan.packed = from;
  plan.unpacked = to;
  plan.sent.assign(index(team.size()), nothing);
  plan.sent[index(root)] = sent(*from, send ? 0 : index(root));
  if (team.rank() != root) return plan;
  for (int rank = 0; rank < team.size(); ++rank) add_received(plan, team, rank, *to, index(rank));
  return plan;
}

OptionalPlan plan_scatter(const Collectives& team, const OptionalBlocks& send,
                          const OptionalBlocks& receive, int root) {
  if (!is_rank(team, root)) return std::nullopt;
  const View from = send ? view_of(*send) : nullptr;
  const View to = receive ? view_of(*receive) : nullptr;
  if ((send && from == nullptr) || (receive && to == nullptr)) return std::nullopt;
  RoundPlan plan;
  plan.packed = from;
  plan.unpacked = to;
  for (int rank = 0; rank < team.size(); ++rank) {
    plan.sent.push_back(from != nullptr ? sent(*from, index(rank)) : nothing);
  }
  if (to != nullptr) add_received(plan, team, root, *to, 0);
  return plan;
}

namespace {

RoundPlan plan_all_to_all(const Collectives& team, const View& from, const View& to) {
  RoundPlan plan;
  plan.packed = from;
  plan.unpacked = to;
  for (int rank = 0; rank < team.size(); ++rank) {
    plan.sent.push_back(sent(*from, index(rank)));
    add_received(plan, team, rank, *to, index(rank));
  }
  return plan;
}

RoundPlan plan_around(const Neighbourhood& around, const View& from, const View& to) {
  RoundPlan plan;
  plan.destinations = around.destinations;
  plan.packed = from;
  plan.unpacked = to;
  for (std::size_t k = 0; k < around.destinations.size(); ++k) plan.sent.push_back(sent(*from, k));
  for (std::size_t k = 0; k < around.incoming.size(); ++k) {
    if (!around.receives(k)) continue;
    const collectives::IncomingBlock& block = around.incoming[k];
    plan.received.push_back({block.source, block.block, to->data(k), to->bytes(k)});
  }
  return plan;
}

}  // namespace

OptionalPlan plan_alltoall(const Collectives& team, const OptionalBlocks& send,
                           const BlockArguments& receive) {
  const View to = view_of(receive);
  const View from = send ? view_of(*send) : to;
  if (to == nullptr || from == nullptr) return std::nullopt;
  RoundPlan plan = plan_all_to_all(team, from, to);
  plan.overwrites = !send;
  return plan;
}

OptionalPlan plan_alltoallw(const Collectives& team,
                            const std::shared_ptr<const AlltoallwSides>& sides) {
  if (!sides->usable()) return std::nullopt;
  const auto to = std::make_shared<KeptParts>(sides, sides->received());
  const auto from = sides->in_place() ? to : std::make_shared<KeptParts>(sides, sides->sent());
  RoundPlan plan = plan_all_to_all(team, from, to);
  plan.overwrites = sides->in_place();
  plan.typed = true;
  for (std::size_t rank = 0; rank < to->size(); ++rank) {
    plan.sent_parts.push_back(from->part(rank));
    plan.received_parts.push_back(to->part(rank));
  }
  return plan;
}

OptionalPlan plan_neighbours(const Neighbourhood& around,
                             const std::shared_ptr<const TypedNeighbourSides>& sides) {
  if (!sides->usable()) return std::nullopt;
  const auto from = std::make_shared<KeptParts>(sides, sides->sent());
  const auto to = std::make_shared<KeptParts>(sides, sides->received());
  RoundPlan plan = plan_around(around, from, to);
  plan.typed = true;
  for (std::size_t k = 0; k < from->size(); ++k) plan.sent_parts.push_back(from->part(k));
  for (std::size_t k = 0; k < to->size(); ++k) {
    if (around.receives(k)) plan.received_parts.push_back(to->part(k));
  }
  return plan;
}

OptionalPlan plan_neighbours(const Neighbourhood& around, BlockArguments send,
                             BlockArguments receive) {
  if (send.counts.size() != around.destinations.size() ||
      receive.counts.size() != around.incoming.size()) {
    return std::nullopt;
  }
  for (std::size_t k = 0; k < send.counts.size(); ++k) {
    if (!around.sends(k)) send.counts[k] = 0;
  }
  for (std::size_t k = 0; k < receive.counts.size(); ++k) {
    if (!around.receives(k)) receive.counts[k] = 0;
  }
  const View from = view_of(send);
  const View to = view_of(receive);
  if (from == nullptr || to == nullptr) return std::nullopt;
  return plan_around(around, from, to);
}

namespace {

const std::byte* input_of(const ReductionArguments& given) {
  return static_cast<const std::byte*>(collectives::is_in_place(given.send) ? given.receive
                                                                            : given.send);
}

// `counts`: how many elements of the result each rank gets, of consecutive parts where the result
// is `scattered`, otherwise from its beginning. This rank's result is that of the first `inputs`
// ranks.
OptionalPlan plan_reduction(const Collectives& team, const ReductionArguments& given,
                            std::span<const std::int64_t> counts, bool scattered, int inputs) {
  const FoundReduction reduction = reduction_of(given.type, given.op);
  // The program may free its operation, and MPI its types, before the last round.
  if (!reduction || reduction->operation.by_mpi) return std::nullopt;
  if (std::ranges::any_of(counts, [](std::int64_t count) { return count < 0; })) {
    return std::nullopt;
  }
  const std::size_t element = reduction->operation.element_bytes;
  RoundPlan plan;
  plan.operation = reduction->operation;
  const std::byte* at = input_of(given);
  for (const std::int64_t count : counts) {
    const std::size_t bytes = static_cast<std::size_t>(count) * element;
    plan.sent.push_back(bytes == 0 ? nothing : SentBlock{at, bytes});
    if (scattered) at += bytes;
  }
  const std::size_t own = index(team.rank());
  for (int rank = 0; rank < inputs; ++rank) {
    plan.received.push_back({rank, own, static_cast<std::byte*>(given.receive),
                             static_cast<std::size_t>(counts[own]) * element});
  }
  return plan;
}

// Each rank combines a slice of `count` elements, for the target.
SharedReduction shared_slices(const Collectives& team, const ReductionArguments& given,
                              const collectives::Operation& operation, std::int64_t count,
                              int target) {
  const auto elements = static_cast<std::size_t>(count);
  const std::size_t element = operation.element_bytes;
  const collectives::Range own =
      collectives::slice(elements, team.rank(), team.size(), operation.slice_grain());
  const bool gets = target == SharedReduction::everybody || target == team.rank();
  return {input_of(given),
          elements * element,
          static_cast<std::byte*>(given.receive),
          gets ? elements * element : 0,
          own.begin * element,
          own.begin * element,
          own.length() * element,
          target,
          operation};
}

}  // namespace

OptionalPlan plan_allreduce(const Collectives& team, const ReductionArguments& given,
                            std::int64_t count) {
  OptionalPlan plan = plan_reduction(team, given, for_all(team, count), false, team.size());
  if (plan) {
    plan->shared = shared_slices(team, given, *plan->operation, count, SharedReduction::everybody);
  }
  return plan;
}

OptionalPlan plan_reduce(const Collectives& team, const ReductionArguments& given,
                         std::int64_t count, int root) {
  if (!is_rank(team, root)) return std::nullopt;
  std::vector<std::int64_t> counts = for_all(team, 0);
  counts[index(root)] = count;
  OptionalPlan plan =
      plan_reduction(team, given, counts, false, team.rank() == root ? team.size() : 0);
  if (plan) plan->shared = shared_slices(team, given, *plan->operation, count, root);
  return plan;
}

OptionalPlan plan_scan(const Collectives& team, const ReductionArguments& given, std::int64_t count,
                       int inputs) {
  return plan_reduction(team, given, for_all(team, count), false, inputs);
}

OptionalPlan plan_reduce_scatter(const Collectives& team, const ReductionArguments& given,
                                 std::span<const std::int64_t> counts) {
  OptionalPlan plan = plan_reduction(team, given, counts, true, team.size());
  // In place, a result takes the place of elements that others still need.
  if (!plan || collectives::is_in_place(given.send)) return plan;
  const std::size_t element = plan->operation->element_bytes;
  const auto own = counts.begin() + team.rank();
  const auto all = std::accumulate(counts.begin(), counts.end(), std::int64_t{0});
  const std::size_t bytes = static_cast<std::size_t>(*own) * element;
  const std::size_t from =
      static_cast<std::size_t>(std::accumulate(counts.begin(), own, std::int64_t{0})) * element;
  plan->shared = SharedReduction{input_of(given),
                                 static_cast<std::size_t>(all) * element,
                                 static_cast<std::byte*>(given.receive),
                                 bytes,
                                 from,
                                 0,
                                 bytes,
                                 team.rank(),
                                 *plan->operation};
  return plan;
}

}  // namespace ropewalk::preload
