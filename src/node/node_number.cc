#include "node/node_number.hpp"

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>
#include <string_view>

#include "mpi/mpi.hpp"
#include "os/node_identity.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::node {
namespace {

[[noreturn]] void malformed(const char* text) {
  throw Error(ErrorCode::argument,
              std::string("ROPEWALK_NODES: found \"") + text +
                  "\"; expected auto, ranks a node as in 2,1,3, or round:N with N nodes");
}

// A whole number of 1 or more at the front of `text`, which then begins behind it.
int take_number(std::string_view& text, const char* whole) {
  int number = 0;
  const auto [after, error] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (error != std::errc() || number < 1) malformed(whole);
  text.remove_prefix(static_cast<std::size_t>(after - text.data()));
  return number;
}

std::vector<int> take_list(std::string_view text, const char* whole) {
  std::vector<int> ranks{take_number(text, whole)};
  while (!text.empty()) {
    if (text.front() != ',') malformed(whole);
    text.remove_prefix(1);
    ranks.push_back(take_number(text, whole));
  }
  return ranks;
}

}  // namespace

std::optional<int> pretended_node(const char* text, int world_rank) {
  if (text == nullptr || std::strcmp(text, "auto") == 0) return std::nullopt;
  constexpr std::string_view round = "round:";
  std::string_view rest = text;
  if (rest.starts_with(round)) {
    rest.remove_prefix(round.size());
    const int nodes = take_number(rest, text);
    if (!rest.empty()) malformed(text);
    return world_rank % nodes;
  }
  const std::vector<int> ranks = take_list(rest, text);
  int node = 0;
  for (int before = 0;; ++node) {
    before += ranks[static_cast<std::size_t>(node) % ranks.size()];
    if (world_rank < before) return node;
  }
}

std::string node_name() {
  std::string name = os::node_identity();
  const char* text = std::getenv("ROPEWALK_NODES");
  if (text == nullptr) return name;
  if (const auto node = pretended_node(text, mpi::rank(mpi::comm_world()))) {
    // In front: what holds names of some length only may cut them at their end.
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
