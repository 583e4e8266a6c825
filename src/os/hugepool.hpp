// The hugetlb pools of the machine, and how much memory this process may still take.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace ropewalk::os {

// Counts of pages, from /sys/kernel/mm/hugepages.
struct HugePool {
  std::size_t page_bytes = 0;
  std::uint64_t total = 0;
  std::uint64_t free = 0;
  std::uint64_t reserved = 0;    // free on paper, but promised to a mapping
  std::uint64_t surplus = 0;     // taken beyond the pool's size
  std::uint64_t overcommit = 0;  // surplus pages that may be taken

  std::uint64_t available() const noexcept { return free > reserved ? free - reserved : 0; }
};

// Returns nothing where the kernel has no pages of this size. `root` is a sysfs tree.
std::optional<HugePool> read_huge_pool(std::size_t page_bytes, const std::string& root = "/sys");

struct MemoryLimit {
  std::uint64_t bytes = UINT64_MAX;  // may still be taken
  std::string name;                  // what sets the limit, for an error's text
};
// How much memory this process can take before the kernel would kill it: MemAvailable, and the
// memory limit of each cgroup this process is in. A snapshot: other processes take memory, too.
MemoryLimit available_memory();

std::uint64_t total_memory_bytes();  // RAM of the machine, or the cgroup's limit if smaller

}  // namespace ropewalk::os
