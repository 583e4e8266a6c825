// The first line of every JSON file: where the figures come from.
#pragma once

#include <string>
#include <vector>

#include "common/table.hpp"

namespace ropewalk::bench {

struct CoreCache {
  int level = 0;
  std::string type;  // "Data", "Unified"
  std::size_t bytes = 0;
  std::string shared_by;  // cores, "0-1"
};
// Data and unified caches of the first core, smallest first. From `root`, for tests.
std::vector<CoreCache> caches(const std::string& root = "/sys/devices/system/cpu/cpu0/cache");
std::size_t last_level_bytes();  // of the largest cache; 32 MiB where the kernel tells none
std::size_t available_memory();  // MemAvailable in bytes; 0 where unknown

std::string commit();  // short hash of the sources, "-dirty" where they were changed; or "unknown"

// {"bench": "machine", host, kernel, CPU, caches, pages, commit}; the caller adds MPI and ranks.
Json machine_line(const std::string& program, const std::string& command);
// Returns one line for people: "AMD EPYC, 2 cores, L3 32 MiB, Linux 6.18".
std::string machine_text(const Json& machine);

}  // namespace ropewalk::bench
