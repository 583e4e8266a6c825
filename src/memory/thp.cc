// This mechanism is memory that begins at a multiple of 2 MiB and gets what transparent huge pages
// give unasked, by the system's setting: the way that Boyle et al. 2017, section II.C, found
// unreliable. Nothing is advised, so it depends on that setting, and on what is free at the time,
// whether pages are huge, all of them, some or none.
#include <sys/mman.h>

#include <cerrno>

#include "memory/mechanism.hpp"
#include "os/pagemap.hpp"

namespace ropewalk::memory {

Block thp_block(std::size_t bytes, const NumaPlacement& placement) {
  Block block;
  block.backing.shortfall = memory_shortage(bytes);
  if (!block.backing.shortfall.empty()) return block;
  os::Mapping range = os::reserve_range(bytes, os::huge_2m);
  if (range && mprotect(range.data(), bytes, PROT_READ | PROT_WRITE) == 0) {
    block.mapping = std::move(range);
  } else {
    block.backing.shortfall = "mmap: " + os::error_text(errno);
  }
  if (!block.mapping || !bind(block, placement)) return block;
  if (const int error = os::populate_write(block.mapping.data(), bytes)) {
    block.backing.shortfall = "populate: " + os::error_text(error);
    return block;
  }
  block.backing.present = true;
  block.backing.huge_bytes = os::summarize_pages(block.mapping.data(), bytes).huge_bytes;
  return block;
}

}  // namespace ropewalk::memory
