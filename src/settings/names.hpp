// Names of variables that no row of the table has: the known one that was meant.
#pragma once

#include <cstddef>
#include <string_view>

#include "settings/table.hpp"
#include "settings/text.hpp"

namespace ropewalk::settings {

// Returns the row of that name; null where there is none.
const Option* find(std::string_view name) noexcept;

// Tells whether a name begins with ROPEWALK_ and no row has it. ROPEWALK_TEST_… are the tests' own.
bool is_unknown(std::string_view name) noexcept;

// Returns the row whose name is spelled most like it; null where none is like it at all.
const Option* nearest(std::string_view name) noexcept;

// Finds, among the names it is offered, the one that is spelled most like another.
class Nearest {
 public:
  explicit Nearest(std::string_view wanted) noexcept;
  void offer(std::string_view name) noexcept;
  std::string_view found() const noexcept { return found_; }  // empty: none is like it at all

 private:
  std::string_view wanted_;
  std::string_view found_;
  std::size_t least_;  // letters that differ; of no more names
};

// Returns "ROPEWALK_LANE: unknown, expected …; did you mean ROPEWALK_LANES?".
Text unknown(std::string_view name) noexcept;

// Returns the name in an entry of the environment, "NAME=value".
inline std::string_view name_of(std::string_view entry) noexcept {
  return entry.substr(0, entry.find('='));
}

}  // namespace ropewalk::settings
