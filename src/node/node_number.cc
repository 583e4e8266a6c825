#include "node/node_number.hpp"

#include <algorithm>
#include <string_view>

#include "mpi/mpi.hpp"
#include "os/node_identity.hpp"
#include "settings/pattern.hpp"
#include "settings/value.hpp"

namespace ropewalk::node {
namespace {

constexpr settings::Id setting = settings::Id::nodes;

}  // namespace

std::optional<int> pretended_node(const char* text, int world_rank) {
  const settings::Value value = settings::require(settings::parse(setting, text));
  if (value.is("auto")) return std::nullopt;
  std::vector<int> ranks;
  settings::each_number(value.text, [&](int number) { ranks.push_back(number); });
  if (value.text.starts_with(settings::round_prefix)) return world_rank % ranks.front();
  int node = 0;
  for (int before = 0;; ++node) {
    before += ranks[static_cast<std::size_t>(node) % ranks.size()];
    if (world_rank < before) return node;
  }
}

std::string node_name() {
  std::string name = os::node_identity();
  const settings::Value value = settings::get(setting);
  if (value.is("auto")) return name;
  if (const auto node = pretended_node(value.text.data(), mpi::rank(mpi::comm_world()))) {
    // The number stands in front, because places that hold names of limited length may cut them at
    // their end.
    name = "pretended " + std::to_string(*node) + ' ' + name;
  }
  return name;
}

std::vector<int> number_nodes(std::span<const std::string> names) {
  std::vector<int> numbers;
  std::vector<std::string_view> seen;
  for (const std::string& name : names) {
    const auto found = std::ranges::find(seen, name);
    numbers.push_back(static_cast<int>(found - seen.begin()));
    if (found == seen.end()) seen.emplace_back(name);
  }
  return numbers;
}

}  // namespace ropewalk::node
