// This header declares the command line of ropewalk-bench-tune.
#pragma once

#include <string>
#include <vector>

#include "common/program.hpp"

namespace ropewalk::bench {

struct TuneOptions {
  CommonOptions common;
  // This option is kept as it was written.
  std::string only = "copies,channel,collectives";
  bool between = false;  // costs alone, at the sizes between the usual ones

  // check() splits `only` into these groups.
  std::vector<std::string> groups;

  // Says whether the group is to be measured.
  bool asks(const std::string& group) const;
};

void describe(CLI::App& app, TuneOptions& options);
// Throws Error(argument) for a wrong option. Returns whether comm threads are needed: for lanes.
bool check(TuneOptions& options);

}  // namespace ropewalk::bench
