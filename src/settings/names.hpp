// Names of variables that no row of the table has: the known one that was meant.
#pragma once

#include <string_view>

#include "settings/table.hpp"
#include "settings/text.hpp"

namespace ropewalk::settings {

// The row of that name; null: none.
const Option* find(std::string_view name) noexcept;

// Whether a name begins with ROPEWALK_, and no row has it. ROPEWALK_TEST_… are the tests' own.
bool is_unknown(std::string_view name) noexcept;

// The row whose name is spelled most like it; null where none is like it at all.
const Option* nearest(std::string_view name) noexcept;

// "ROPEWALK_LANE: unknown, expected …; did you mean ROPEWALK_LANES?"
Text unknown(std::string_view name) noexcept;

// The name in an entry of the environment, "NAME=value".
inline std::string_view name_of(std::string_view entry) noexcept {
  return entry.substr(0, entry.find('='));
}

}  // namespace ropewalk::settings
