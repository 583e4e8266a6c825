// The table of settings as scripts/settings_reference.py reads it: a line a row, and between the
// parts of a row a unit separator (0x1f).
#include <iostream>

#include "settings/value.hpp"

int main() {
  using namespace ropewalk::settings;
  for (const Option& row : table()) {
    const char between = '\x1f';
    std::cout << row.name << between << name(row.kind) << between << row.words << between
              << expected(row).view() << between << row.fallback << between << row.automatic
              << between << name(row.scope) << between << name(row.reader) << between << row.page
              << between << row.meaning << '\n';
  }
  return 0;
}
