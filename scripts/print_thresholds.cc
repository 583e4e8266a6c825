// Prints the table of thresholds as scripts/thresholds_reference.py reads it: one line for each
// row, and a unit separator (0x1f) between the parts of a row.
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
