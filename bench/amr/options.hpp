// The command line of ropewalk-bench-amr.
#pragma once

#include <string>
#include <vector>

#include "common/program.hpp"

namespace ropewalk::bench {

struct AmrOptions {
  CommonOptions common;
  // The options as they were written.
  std::string cells = "4,8,16";
  int edge = 4;
  int meshes = 4;
  int steps = 5;

  std::vector<int> cell_list;  // what check() has made of them
};

void describe(CLI::App& app, AmrOptions& options);
// Throws Error(argument). Returns true where comm threads are needed: never.
bool check(AmrOptions& options);

}  // namespace ropewalk::bench
