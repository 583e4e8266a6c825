// The NUMA nodes of this machine as sysfs describes them, and what kind of memory each has.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "ropewalk/memory.hpp"

namespace ropewalk::topology {

struct NumaNode {
  int number = 0;
  std::size_t bytes = 0;
  std::size_t free_bytes = 0;
  std::vector<int> cpus;  // none: memory only (CXL, HBM)
  // Speeds as the firmware tells them of the nearest cores, and the kernel's memory tier, of which
  // a smaller one is faster. Zero where they are not told.
  std::size_t read_mb_per_s = 0;
  std::size_t read_latency_ns = 0;
  std::size_t tier = 0;
  std::size_t memory_side_cache_bytes =
      0;  // faster memory that the hardware keeps as a cache of it
};

// Returns the nodes that are online, by number. `root` is a sysfs tree; the result is empty where
// it says nothing.
std::vector<NumaNode> read_numa_nodes(const std::string& root = "/sys");

// Returns nothing for a node without cores of which nothing says how fast it is. The Python package
// judges alike (numa.py).
std::optional<MemoryKind> kind_of(const NumaNode& node, std::span<const NumaNode> all);

// Returns the nodes of this machine as they are now, for a choice among them: some 100 us a node.
std::vector<NumaNode> numa_nodes();
// Makes numa_nodes() return these on the calling thread, or the real machine's where null is given,
// and returns the pointer that was set before. For tests. The nodes must outlive their use.
const std::vector<NumaNode>* replace_numa_nodes(const std::vector<NumaNode>*) noexcept;

}  // namespace ropewalk::topology
