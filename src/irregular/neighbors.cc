// This file finds the lists of neighbors of a matrix or a mesh whose rows are divided among ranks.
#include <algorithm>
#include <cstdint>
#include <numeric>
#include <string>
#include <utility>

#include "ropewalk/collectively.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/irregular_halo.hpp"

namespace ropewalk {
namespace {

// The counts and displacements, in bytes, of lists of numbers that all ranks send each other.
struct Layout {
  explicit Layout(const std::vector<std::int64_t>& numbers)
      : counts(numbers.size()), displacements(numbers.size()) {
    for (std::size_t rank = 0; rank < numbers.size(); ++rank) {
      counts[rank] = static_cast<std::size_t>(numbers[rank]) * sizeof(std::int64_t);
      if (rank != 0) displacements[rank] = displacements[rank - 1] + counts[rank - 1];
    }
  }
  std::size_t first(std::size_t rank) const { return displacements[rank] / sizeof(std::int64_t); }
  std::size_t number(std::size_t rank) const { return counts[rank] / sizeof(std::int64_t); }

  std::vector<std::size_t> counts;
  std::vector<std::size_t> displacements;
};

// Which ghosts each rank owns: their positions in `ghosts`, by owner and then by global number.
std::vector<std::vector<std::int64_t>> by_owner(const std::vector<std::int64_t>& first,
                                                std::span<const std::int64_t> ghosts, int rank) {
  std::vector<std::int64_t> order(ghosts.size());
  std::iota(order.begin(), order.end(), 0);
  const auto global = [&](std::int64_t at) { return ghosts[static_cast<std::size_t>(at)]; };
  std::sort(order.begin(), order.end(),
            [&](std::int64_t a, std::int64_t b) { return global(a) < global(b); });
  std::vector<std::vector<std::int64_t>> owned(first.size() - 1);
  for (std::size_t i = 0; i < order.size(); ++i) {
    const std::int64_t ghost = global(order[i]);
    const std::string name = "ghosts[" + std::to_string(order[i]) + "]: " + std::to_string(ghost);
    if (ghost < 0 || ghost >= first.back()) {
      throw Error(ErrorCode::argument, name + ", expected a row of another rank, 0 to " +
                                           std::to_string(first.back() - 1));
    }
    if (i != 0 && global(order[i - 1]) == ghost) {
      throw Error(ErrorCode::argument, name + " is listed twice; list it once");
    }
    const auto after = std::upper_bound(first.begin(), first.end(), ghost);
    const auto owner = static_cast<std::size_t>(after - first.begin()) - 1;
    if (static_cast<int>(owner) == rank) {
      throw Error(ErrorCode::argument, name + " is a row of this rank, expected one of another");
    }
    owned[owner].push_back(order[i]);
  }
  return owned;
}

// The first row of each rank, and behind them the number of all rows.
std::vector<std::int64_t> first_rows(Collectives& ranks, std::int64_t rows) {
  std::vector<std::int64_t> first(static_cast<std::size_t>(ranks.size()) + 1);
  ranks.allgather(&rows, first.data() + 1, sizeof rows);
  std::partial_sum(first.begin(), first.end(), first.begin());
  return first;
}

}  // namespace

std::vector<Neighbor> neighbors_by_rows(Communicator communicator, std::int64_t rows,
                                        std::span<const std::int64_t> ghosts) {
  Collectives ranks(communicator);
  const auto size = static_cast<std::size_t>(ranks.size());
  std::vector<std::int64_t> first;
  std::vector<std::vector<std::int64_t>> owned;
  collectively(ranks, [&] {
    if (rows < 0) {
      throw Error(ErrorCode::argument,
                  "rows: " + std::to_string(rows) + ", expected 0 or more; pass this rank's own");
    }
    meet(ranks);
    first = first_rows(ranks, rows);
    owned = by_owner(first, ghosts, ranks.rank());
  });
  // Each rank tells the others which of their rows it needs.
  std::vector<std::int64_t> asked(size);
  std::vector<std::int64_t> needed(size);
  std::vector<std::int64_t> questions;
  for (std::size_t peer = 0; peer < size; ++peer) {
    asked[peer] = static_cast<std::int64_t>(owned[peer].size());
    for (const std::int64_t at : owned[peer]) {
      questions.push_back(ghosts[static_cast<std::size_t>(at)]);
    }
  }
  ranks.alltoall(asked.data(), needed.data(), sizeof(std::int64_t));
  const Layout sent(asked);
  const Layout received(needed);
  std::vector<std::int64_t> answers(received.first(size - 1) + received.number(size - 1));
  ranks.alltoallv(questions.data(), sent.counts.data(), sent.displacements.data(), answers.data(),
                  received.counts.data(), received.displacements.data());
  std::vector<Neighbor> neighbors;
  for (std::size_t peer = 0; peer < size; ++peer) {
    if (asked[peer] == 0 && needed[peer] == 0) continue;
    Neighbor one{static_cast<int>(peer), {}, std::move(owned[peer])};
    for (std::int64_t& index : one.receive) index += rows;
    const auto* begin = answers.data() + received.first(peer);
    const std::int64_t own = first[static_cast<std::size_t>(ranks.rank())];
    for (std::size_t i = 0; i < received.number(peer); ++i) one.send.push_back(begin[i] - own);
    neighbors.push_back(std::move(one));
  }
  return neighbors;
}

}  // namespace ropewalk
