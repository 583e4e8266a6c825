// The command line of ropewalk-bench-attach.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "common/program.hpp"

namespace ropewalk::bench {

struct AttachOptions {
  CommonOptions common;
  // The options as they were written.
  std::string sizes = "4K,16K,64K,256K,1M,4M";
  std::string tables = "steps,contention";
  std::string traces;
  std::string capacities = "4,16,64,4096";
  bool tables_given = false;

  // What check() has made of them.
  std::vector<std::size_t> size_list;
  std::vector<std::string> table_list;
  std::vector<std::string> trace_list;
  std::vector<std::size_t> capacity_list;

  bool wants(const std::string& table) const;
};

void describe(CLI::App& app, AttachOptions& options);
// Throws Error(argument).
void check(AttachOptions& options);

}  // namespace ropewalk::bench
