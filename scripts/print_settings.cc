// Prints the table of settings as scripts/settings_reference.py reads it: one line for each row,
// and a unit separator (0x1f) between the parts of a row.
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
