#include "settings/names.hpp"

#include <algorithm>
#include <array>
#include <numeric>

namespace ropewalk::settings {
namespace {

constexpr std::string_view prefix = "ROPEWALK_";
constexpr std::string_view of_tests = "ROPEWALK_TEST_";
constexpr std::size_t longest = 40;  // of a name, without prefix; what is longer is like none

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

Nearest::Nearest(std::string_view wanted) noexcept
    // Where half of it is spelled otherwise, it is not alike.
    : wanted_(wanted), least_(wanted.size() > longest ? 0 : wanted.size() / 2 + 1) {}

void Nearest::offer(std::string_view name) noexcept {
  if (least_ == 0 || name.size() > longest) return;
  const std::size_t letters = distance(wanted_, name);
  if (letters >= least_) return;
  least_ = letters;
  found_ = name;
}

const Option* nearest(std::string_view name) noexcept {
  if (!name.starts_with(prefix)) return nullptr;
  Nearest nearest(name.substr(prefix.size()));
  for (const Option& option : table()) nearest.offer(option.name.substr(prefix.size()));
  const std::string_view found = nearest.found();
  // What was offered is the end of a name of the table.
  return found.empty() ? nullptr
                       : find({found.data() - prefix.size(), found.size() + prefix.size()});
}

Text unknown(std::string_view name) noexcept {
  Text out;
  out << name.substr(0, prefix.size() + longest)
      << ": unknown, expected a name that `ropewalk config` lists; ";
  if (const Option* meant = nearest(name)) return out << "did you mean " << meant->name << "?";
  return out << "unset it";
}

}  // namespace ropewalk::settings
