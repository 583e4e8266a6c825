#include "memory/guessed_range.hpp"

#include <algorithm>

#include "os/hugepool.hpp"
#include "os/mapping.hpp"
#include "topology/node_ranks.hpp"

namespace ropewalk::memory {
namespace {

constexpr std::uint64_t half_of_addresses = std::uint64_t{1} << 46;
constexpr int most_ranks = 128;  // collectives of more on a node go to MPI

}  // namespace

std::size_t range_without_limit(std::uint64_t memory, std::optional<int> node_ranks) noexcept {
  const int sharers = std::clamp(node_ranks.value_or(most_ranks), 1, most_ranks);
  const std::uint64_t share = half_of_addresses / static_cast<std::uint64_t>(sharers);
  return std::max<std::uint64_t>(std::min(memory / 2, share), least_range);
}

std::size_t range_within(std::uint64_t limit, std::uint64_t memory, int node_ranks) noexcept {
  const std::uint64_t share = limit / 4 / static_cast<std::uint64_t>(std::max(node_ranks, 1));
  return std::max<std::uint64_t>(std::min(memory / 2, share), least_limited_range);
}

std::size_t guess_range() {
  const std::uint64_t memory = os::total_memory_bytes();
  const auto limit = os::address_limit();
  if (!limit) return range_without_limit(memory, topology::told_node_ranks());
  return range_within(*limit, memory, topology::expected_node_ranks());
}

}  // namespace ropewalk::memory
