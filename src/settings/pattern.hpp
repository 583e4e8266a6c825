// Ranks of nodes as ROPEWALK_NODES gives them: "2,1,3", ranks a node, or "round:3", nodes.
#pragma once

#include <charconv>
#include <string_view>

namespace ropewalk::settings {

inline constexpr std::string_view round_prefix = "round:";

// Calls each(number) for each number of the pattern behind its prefix; false where it is none: a
// list of whole numbers of 1 or more, and of one alone behind `round:`.
template <class Each>
bool each_number(std::string_view pattern, Each each) {
  const bool round = pattern.starts_with(round_prefix);
  if (round) pattern.remove_prefix(round_prefix.size());
  while (true) {
    int number = 0;
    const char* end = pattern.data() + pattern.size();
    const auto [after, error] = std::from_chars(pattern.data(), end, number);
    if (error != std::errc() || number < 1) return false;
    each(number);
    if (after == end) return true;
    if (round || *after != ',') return false;
    pattern.remove_prefix(static_cast<std::size_t>(after - pattern.data()) + 1);
  }
}

}  // namespace ropewalk::settings
