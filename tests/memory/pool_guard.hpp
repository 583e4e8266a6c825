// The machine's pool of 2 MiB pages, lent to one test at a time and put back as it was.
#pragma once

#include <fcntl.h>
#include <sys/file.h>

#include <cstdint>
#include <optional>
#include <string>

#include "os/file.hpp"
#include "os/hugepool.hpp"
#include "os/mapping.hpp"

namespace ropewalk::test {

class PoolGuard {
 public:
  // Blocks until no other test has the pool: the lock is on the pool's own file in sysfs, so that
  // it serves every build directory and leaves nothing behind.
  PoolGuard() : lock_(open(path, O_RDONLY | O_CLOEXEC)) {
    if (!lock_ || flock(lock_.get(), LOCK_EX) != 0) return;
    const auto pool = os::read_huge_pool(os::huge_2m);
    if (pool) before_ = pool->total - pool->surplus;
  }
  PoolGuard(const PoolGuard&) = delete;
  PoolGuard& operator=(const PoolGuard&) = delete;
  ~PoolGuard() {
    if (before_) os::write_text(path, std::to_string(*before_));
  }

  // Returns a pool of exactly this many pages of which none is taken; else the reason why not.
  std::string set(std::uint64_t pages) {
    if (!before_) return "this kernel has no pool of 2 MiB pages";
    if (!os::write_text(path, std::to_string(pages))) return "only root may set the pool";
    const auto pool = os::read_huge_pool(os::huge_2m);
    if (pool->total != pages) return "the kernel did not find the pages";
    if (pool->available() != pages) return "another program has taken pages of the pool";
    if (pool->overcommit != 0) return "this pool grows on demand";
    return {};
  }

 private:
  static constexpr const char* path = "/sys/kernel/mm/hugepages/hugepages-2048kB/nr_hugepages";
  os::Descriptor lock_;
  std::optional<std::uint64_t> before_;
};

}  // namespace ropewalk::test
