#include "memory/granules.hpp"

#include <algorithm>

namespace ropewalk::memory {

Granules::Granules(std::size_t reserved, std::size_t bytes)
    : bytes_(bytes), pages_(std::make_unique<std::atomic<Pages>[]>(reserved / bytes)) {}

void Granules::set(Run run, Pages pages) noexcept {
  for (std::size_t granule = run.first; granule < run.end; ++granule) {
    pages_[granule].store(pages, std::memory_order_relaxed);
  }
}

void Granules::raise(Run run, Pages pages) noexcept {
  for (std::size_t granule = run.first; granule < run.end; ++granule) {
    if (at(granule) < pages) set({granule, granule + 1}, pages);
  }
}

void Granules::lower(Run run, Pages pages) noexcept {
  for (std::size_t granule = run.first; granule < run.end; ++granule) {
    if (at(granule) > pages) set({granule, granule + 1}, pages);
  }
}

std::size_t Granules::huge_bytes(Run run) const noexcept {
  std::size_t count = 0;
  for (std::size_t granule = run.first; granule < run.end; ++granule) {
    count += at(granule) == Pages::huge ? 1 : 0;
  }
  return count * bytes_;
}

}  // namespace ropewalk::memory
