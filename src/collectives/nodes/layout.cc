#include "collectives/nodes/layout.hpp"

#include <algorithm>

namespace ropewalk::collectives::nodes {

NodeLayout layout_of(const std::vector<int>& numbers, int rank) {
  NodeLayout layout;
  layout.rank = rank;
  std::vector<int> seen;
  for (std::size_t one = 0; one < numbers.size(); ++one) {
    const auto at = static_cast<std::size_t>(std::ranges::find(seen, numbers[one]) - seen.begin());
    if (at == seen.size()) {
      seen.push_back(numbers[one]);
      layout.members.emplace_back();
    }
    std::vector<int>& members = layout.members[at];
    if (!members.empty() && members.back() + 1 != static_cast<int>(one)) layout.contiguous = false;
    layout.node_of.push_back(static_cast<int>(at));
    layout.place_of.push_back(static_cast<int>(members.size()));
    members.push_back(static_cast<int>(one));
  }
  layout.node = layout.node_of[static_cast<std::size_t>(rank)];
  const auto by_size = [](const auto& a, const auto& b) { return a.size() < b.size(); };
  const auto [least, most] = std::ranges::minmax_element(layout.members, by_size);
  layout.least = static_cast<int>(least->size());
  layout.most = static_cast<int>(most->size());
  return layout;
}

}  // namespace ropewalk::collectives::nodes
