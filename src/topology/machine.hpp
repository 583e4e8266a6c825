// What this machine is: packages, cores, SMT siblings, caches, NUMA nodes, as sysfs tells. Knows
// nothing of ranks. Read once and kept by whoever needs it: a walk over sysfs is some 100 us a CPU.
#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "topology/numa_nodes.hpp"

namespace ropewalk::topology {

struct Core {
  int package = 0;        // physical_package_id
  int number = 0;         // core_id: unique within a package only
  std::vector<int> cpus;  // its SMT siblings that are online, ascending
};

struct Cache {
  int level = 0;
  std::string type;  // "Data", "Instruction" or "Unified"
  std::size_t bytes = 0;
  std::size_t line_bytes = 0;
  std::vector<int> cpus;  // that share it
};

struct Machine {
  std::vector<int> cpus;      // online
  std::vector<Core> cores;    // by lowest CPU
  std::vector<Cache> caches;  // each once, by level, then type and lowest CPU
  std::vector<NumaNode> nodes;

  // Returns the core of a CPU; null where sysfs does not say.
  const Core* core_of(int cpu) const;
  const NumaNode* node_of(int cpu) const;
  // Returns the size of the data or unified cache of this level that `cpu` uses; 0 where there is
  // none.
  std::size_t cache_bytes(int level, int cpu) const;
  // Returns the size of the outermost cache that `cpu` uses.
  std::size_t last_level_cache_bytes(int cpu) const;
};

// `root` is a sysfs tree. What is missing there (containers, odd architectures) is left out: each
// CPU is then a core of its own, with no cache, and all on node 0.
Machine read_machine(const std::string& root = "/sys");

// Holds the CPUs that this thread may run on, and how many of them the cgroups' quota pays for.
struct UsableCpus {
  std::vector<int> cpus;        // affinity mask
  std::optional<double> quota;  // CPUs' worth of time; nothing: unlimited
  // Returns how many threads can run at the same time, never 0.
  int count() const noexcept;
};
UsableCpus usable_cpus();

// Returns the smallest quota of a cgroup and those above it. `mount` is where cgroups are mounted,
// `membership` the text of /proc/self/cgroup.
std::optional<double> cpu_quota(const std::string& mount, const std::string& membership);

}  // namespace ropewalk::topology
