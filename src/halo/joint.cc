// What all ranks must have passed alike.
#include "halo/joint.hpp"

#include <algorithm>
#include <string>
#include <vector>

namespace ropewalk::halo {

void agree(mpi::Comm comm, std::span<const Fact> facts, std::span<std::int64_t> largest) {
  // The maximum of x and of -x in one reduction: they sum to zero where all ranks agree.
  std::vector<std::int64_t> extremes;
  extremes.reserve(2 * facts.size() + largest.size());
  for (const Fact& fact : facts) {
    extremes.push_back(fact.value);
    extremes.push_back(-fact.value);
  }
  extremes.insert(extremes.end(), largest.begin(), largest.end());
  mpi::all_reduce(extremes, mpi::Combine::max, comm);
  std::copy(extremes.end() - static_cast<std::ptrdiff_t>(largest.size()), extremes.end(),
            largest.begin());
  for (std::size_t i = 0; i < facts.size(); ++i) {
    const std::int64_t highest = extremes[2 * i];
    const std::int64_t lowest = -extremes[2 * i + 1];
    if (lowest != highest) {
      throw Error(ErrorCode::argument, facts[i].name + ": from " + std::to_string(lowest) + " to " +
                                           std::to_string(highest) +
                                           " over the ranks, expected the same on all; pass the "
                                           "same on every rank");
    }
  }
}

}  // namespace ropewalk::halo
