// The command line of ropewalk-bench-tune.
#pragma once

#include <string>
#include <vector>

#include "common/program.hpp"

namespace ropewalk::bench {

struct TuneOptions {
  CommonOptions common;
  // The options as they were written.
  std::string only = "copies,channel,collectives";

  // What check() has made of them.
  std::vector<std::string> groups;

  bool asks(const std::string& group) const;
};

void describe(CLI::App& app, TuneOptions& options);
// Throws Error(argument). Comm threads are never needed: false.
bool check(TuneOptions& options);

}  // namespace ropewalk::bench
