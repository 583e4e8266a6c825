// The table of thresholds as scripts/thresholds_reference.py reads it: a line a row, and between
// the parts of a row a unit separator (0x1f).
#include <iostream>

#include "tuning/table.hpp"

int main() {
  for (const ropewalk::tuning::Row& row : ropewalk::tuning::table()) {
    const char between = '\x1f';
    std::cout << row.name << between << name(row.unit) << between << row.text << between
              << row.least << between << row.most << between << row.serves << between << row.meaning
              << between << row.origin << between << row.machine << '\n';
  }
  return 0;
}
