// How an error or a difference of one rank reaches all.
#include "halo/joint.hpp"

#include <algorithm>
#include <array>
#include <cstring>
#include <limits>
#include <vector>

namespace ropewalk::halo {

namespace {

struct SharedError {
  std::int64_t code;
  std::array<char, 1016> text;  // bytes; longer texts are cut
};

SharedError shared(const Error& error) {
  SharedError out{static_cast<std::int64_t>(error.code()), {}};
  std::strncpy(out.text.data(), error.what(), out.text.size() - 1);
  return out;
}

}  // namespace

void share_error(mpi::Comm comm, const std::optional<Error>& own) {
  constexpr std::int64_t none = std::numeric_limits<std::int64_t>::max();
  std::array<std::int64_t, 1> first{own ? mpi::rank(comm) : none};
  mpi::all_reduce(first, mpi::Combine::min, comm);
  if (first[0] == none) return;
  const int root = static_cast<int>(first[0]);
  SharedError error{};
  if (own && mpi::rank(comm) == root) error = shared(*own);
  mpi::broadcast(&error, sizeof error, root, comm);
  throw Error(static_cast<ErrorCode>(error.code),
              std::string(error.text.data()) + " (found on rank " + std::to_string(root) + ")");
}

void agree(mpi::Comm comm, std::span<const Fact> facts) {
  // The maximum of x and of -x in one reduction: they sum to zero where all ranks agree.
  std::vector<std::int64_t> extremes;
  extremes.reserve(2 * facts.size());
  for (const Fact& fact : facts) {
    extremes.push_back(fact.value);
    extremes.push_back(-fact.value);
  }
  mpi::all_reduce(extremes, mpi::Combine::max, comm);
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
