#include "common/rank_grid.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/parse.hpp"
#include "ropewalk/collectively.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {

// Each prime factor, largest first, goes to the dimension with the fewest ranks so far.
std::vector<int> even_grid(int ranks, int dimensions) {
  std::vector<int> factors;
  for (int factor = 2; ranks > 1; ++factor) {
    for (; ranks % factor == 0; ranks /= factor) factors.push_back(factor);
  }
  std::vector<int> out(static_cast<std::size_t>(dimensions), 1);
  for (; !factors.empty(); factors.pop_back()) *std::ranges::min_element(out) *= factors.back();
  return out;
}

std::vector<int> rank_grid(const std::vector<int>& wanted, int ranks, int dimensions) {
  if (wanted.empty()) return even_grid(ranks, dimensions);
  int product = 1;
  for (const int extent : wanted) product *= extent;
  if (product == ranks) return wanted;
  throw CollectiveError(
      ErrorCode::argument,
      fmt::format("--mpi-grid: {} makes {} ranks, and there are {}; give extents whose product is "
                  "{}, or leave the option out",
                  dotted(wanted), product, ranks, ranks));
}

}  // namespace ropewalk::bench
