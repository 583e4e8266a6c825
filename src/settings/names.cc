#include "settings/names.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace ropewalk::settings {
namespace {

constexpr std::string_view prefix = "ROPEWALK_";
constexpr std::string_view of_tests = "ROPEWALK_TEST_";
constexpr std::size_t longest = 40;  // of a name behind the prefix; what is longer is like none

// Levenshtein's: letters to insert, leave out or change, to make one of the other. The table of the
// algorithm is kept a row at a time.
std::size_t distance(std::string_view one, std::string_view other) noexcept {
  std::array<std::size_t, longest + 1> row;
  std::iota(row.begin(), row.end(), std::size_t{0});
  for (std::size_t i = 0; i < one.size(); ++i) {
    std::size_t diagonal = row[0];
    row[0] = i + 1;
    for (std::size_t j = 0; j < other.size(); ++j) {
      const std::size_t changed = diagonal + (one[i] == other[j] ? 0 : 1);
      diagonal = row[j + 1];
      row[j + 1] = std::min({changed, row[j] + 1, diagonal + 1});
    }
  }
  return row[other.size()];
}

}  // namespace

const Option* find(std::string_view name) noexcept {
  for (const Option& option : table()) {
    if (option.name == name) return &option;
  }
  return nullptr;
}

bool is_unknown(std::string_view name) noexcept {
  return name.starts_with(prefix) && !name.starts_with(of_tests) && find(name) == nullptr;
}

const Option* nearest(std::string_view name) noexcept {
  if (!name.starts_with(prefix)) return nullptr;
  name.remove_prefix(prefix.size());
  if (name.size() > longest) return nullptr;
  const Option* found = nullptr;
  std::size_t least = name.size() / 2 + 1;  // half of it is spelled otherwise: not alike
  for (const Option& option : table()) {
    const std::size_t letters = distance(name, option.name.substr(prefix.size()));
    if (letters >= least) continue;
    least = letters;
    found = &option;
  }
  return found;
}

Text unknown(std::string_view name) noexcept {
  Text out;
  out << name.substr(0, prefix.size() + longest)
      << ": unknown, expected a name that `ropewalk config` lists; ";
  if (const Option* meant = nearest(name)) return out << "did you mean " << meant->name << "?";
  return out << "unset it";
}

}  // namespace ropewalk::settings
