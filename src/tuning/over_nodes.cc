#include "tuning/over_nodes.hpp"

#include <algorithm>
#include <bit>
#include <iterator>

#include "settings/value.hpp"

namespace ropewalk::tuning {
namespace {

// These are the names of Algorithm, as ROPEWALK_ALLREDUCE has them.
constexpr const char* algorithm_names[] = {"whole", "flat", "doubling", "halving", "ring", "mpi"};

constexpr std::size_t page_bytes = 4096;  // chunks end on borders of small pages

Algorithm automatic(const Values& values, const ReductionCall& call) {
  if (call.rooted && call.bytes < values[Id::nodes_rooted_flat]) return Algorithm::flat;
  if (call.rooted) {
    return call.bytes < values[Id::nodes_chain] ? Algorithm::whole : Algorithm::ring;
  }
  if (call.bytes < values[Id::nodes_flat]) return Algorithm::flat;
  return call.bytes < values[Id::nodes_ring] ? Algorithm::mpi : Algorithm::ring;
}

// What takes the place of MPI's own calls where there is no MPI. Up to this length a message costs
// more than its bytes, over TCP.
constexpr std::size_t short_without_mpi = std::size_t{32} << 10;
Algorithm without_mpi(Algorithm wanted, const ReductionCall& call) {
  if (wanted != Algorithm::whole && wanted != Algorithm::mpi) return wanted;
  if (call.rooted || call.bytes < short_without_mpi) return Algorithm::doubling;
  return Algorithm::halving;
}

// Whether a chain of chunks is done before a tree of the whole.
bool chain_is_faster(const Values& values, const Shape& shape, std::size_t bytes) {
  const std::size_t slice = bytes / static_cast<std::size_t>(shape.least);
  const std::size_t chunks = slice / broadcast_chunk(values, slice);
  const auto nodes = static_cast<std::size_t>(shape.nodes);
  const auto depth = static_cast<std::size_t>(std::bit_width(nodes - 1));
  return chunks > 1 && chunks + nodes - 2 <= chunks * depth;
}

}  // namespace

bool is_served(const Shape& shape, bool size_is) {
  return shape.without_mpi || (shape.most > 1 && (size_is || shape.serves_all_sizes));
}

bool has_few_nodes(const Values& values, const Shape& shape) {
  return shape.without_mpi ||
         static_cast<std::size_t>(shape.nodes) <= values[Id::nodes_rooted_nodes];
}

const char* name(Algorithm algorithm) {
  return algorithm_names[static_cast<std::size_t>(algorithm)];
}

int wished_algorithm() {
  const settings::Value wish = settings::get(settings::Id::allreduce);
  for (std::size_t at = 0; at < std::size(algorithm_names); ++at) {
    if (wish.is(algorithm_names[at])) return static_cast<int>(at);
  }
  return -1;
}

Values values_over_nodes(const Facts& facts) { return {facts, profile()}; }

int most_slices(const Values& values, int most_ranks) {
  return std::min(most_ranks, static_cast<int>(values[Id::nodes_slices]));
}

ReductionChoice choose_reduction(const Values& values, const Shape& shape,
                                 const ReductionCall& call) {
  const bool wished = call.wish >= 0 && !call.rooted;
  const auto wanted = wished ? static_cast<Algorithm>(call.wish) : automatic(values, call);
  const Algorithm algorithm = shape.without_mpi ? without_mpi(wanted, call) : wanted;
  const auto worth =
      static_cast<int>(std::min(values[Id::nodes_slices], call.bytes / values[Id::nodes_slice]));
  const int slices = std::clamp(worth, 1, most_slices(values, shape.most));
  const std::size_t slice_bytes = call.bytes / static_cast<std::size_t>(slices) + 1;
  // There are four chunks, so that one is reduced while others travel.
  const std::size_t messages = call.rooted ? 1 : static_cast<std::size_t>(shape.nodes);
  const std::size_t least = values[Id::nodes_least_message];
  const std::size_t most = std::max(least, call.longest_message_bytes);
  return {algorithm, slices, std::clamp(slice_bytes / 4, messages * least, messages * most)};
}

// Each slice has a few chunks, so that the chain fills.
std::size_t broadcast_chunk(const Values& values, std::size_t slice_bytes) {
  const std::size_t part = (slice_bytes / 8 + page_bytes - 1) / page_bytes * page_bytes;
  const std::size_t least = values[Id::nodes_broadcast_least_chunk];
  return std::clamp(part, least, std::max(least, values[Id::nodes_broadcast_most_chunk]));
}

BroadcastWay choose_broadcast(const Values& values, const Shape& shape, std::size_t bytes) {
  if (bytes >= values[Id::nodes_broadcast_chain] && chain_is_faster(values, shape, bytes)) {
    return BroadcastWay::chain;
  }
  if (bytes < values[Id::nodes_broadcast_flat] && !shape.serves_all_sizes) {
    return BroadcastWay::flat;
  }
  return is_served(shape, true) ? BroadcastWay::tree : BroadcastWay::mpi;
}

AllgatherWay choose_allgather(const Values& values, const Shape& shape, std::size_t bytes_of_all) {
  if (!is_served(shape, bytes_of_all >= values[Id::nodes_allgather])) return AllgatherWay::mpi;
  return bytes_of_all > values[Id::nodes_allgather_leaders] ? AllgatherWay::slices
                                                            : AllgatherWay::leaders;
}

bool sends_together(const Values& values, std::size_t bytes, std::size_t senders,
                    std::size_t receivers) {
  const std::size_t small = values[Id::nodes_alltoall_together_block] * senders * receivers;
  return bytes <= std::min(small, values[Id::nodes_alltoall_together]);
}

std::size_t reduce_scatter_chunk(const Values& values, std::size_t other_nodes) {
  const std::size_t least = values[Id::nodes_reduce_scatter_least_chunk];
  return std::clamp(values[Id::nodes_reduce_scatter_chunks] / other_nodes, least,
                    std::max(least, values[Id::nodes_reduce_scatter_most_chunk]));
}

bool rooted_goes_flat(const Values& values, const Shape& shape, std::size_t block_bytes) {
  const auto ranks = static_cast<std::size_t>(shape.nodes) * static_cast<std::size_t>(shape.most);
  return block_bytes < values[Id::nodes_rooted_flat] && ranks <= values[Id::nodes_rooted_nodes] &&
         !shape.serves_all_sizes;
}

bool serves_barrier(const Shape& shape) { return is_served(shape, true); }

bool serves_reduce_scatter(const Values& values, const Shape& shape, std::size_t bytes_of_all) {
  return is_served(shape, bytes_of_all >= values[Id::nodes_reduce_scatter]);
}

bool serves_alltoall(const Values& values, const Shape& shape, std::size_t block_bytes) {
  return is_served(shape, !shape.crowded && block_bytes <= values[Id::nodes_alltoall]);
}

bool serves_gather(const Values& values, const Shape& shape, std::size_t block_bytes) {
  return has_few_nodes(values, shape) && is_served(shape, block_bytes >= values[Id::nodes_gather]);
}

bool serves_scatter(const Values& values, const Shape& shape, std::size_t block_bytes) {
  return has_few_nodes(values, shape) && is_served(shape, block_bytes >= values[Id::nodes_scatter]);
}

bool serves_gatherv(const Values& values, const Shape& shape, bool int_counts) {
  return has_few_nodes(values, shape) && is_served(shape, !shape.crowded || int_counts);
}

bool serves_scatterv(const Values& values, const Shape& shape, bool int_counts) {
  return has_few_nodes(values, shape) && is_served(shape, int_counts);
}

bool serves_alltoallv(const Shape& shape, bool int_counts) {
  return is_served(shape, !shape.crowded || int_counts);
}

bool serves_neighbours(const Shape& shape, bool openmpi) { return is_served(shape, !openmpi); }

bool serves_alltoallw(const Shape& shape, bool openmpi) { return is_served(shape, !openmpi); }

}  // namespace ropewalk::tuning
