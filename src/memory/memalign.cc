// This mechanism is posix_memalign of libc on small pages, the baseline of the paper's comparison.
#include <cstdlib>
#include <cstring>

#include "memory/mechanism.hpp"
#include "os/numa.hpp"
#include "os/pagemap.hpp"

namespace ropewalk::memory {

Block memalign_block(std::size_t bytes, const NumaPlacement& placement) {
  Block block;
  block.backing.shortfall = memory_shortage(bytes);
  if (!block.backing.shortfall.empty()) return block;
  void* found = nullptr;
  if (const int error = posix_memalign(&found, os::page_bytes(), bytes)) {
    block.backing.shortfall = "posix_memalign: " + os::error_text(error);
    return block;
  }
  // Pages that libc had before may lie elsewhere; whoever verifies the placement moves them.
  block.backing.shortfall = placement.bind(found, bytes);
  if (!block.backing.shortfall.empty()) {
    free_memalign(found, bytes);
    return block;
  }
  os::advise_small(found, os::round_down(bytes, os::page_bytes()));
  std::memset(found, 0, bytes);
  block.mapping = os::Mapping(found, bytes);
  block.backing.present = true;
  block.backing.huge_bytes = os::summarize_pages(found, bytes).huge_bytes;
  return block;
}

void free_memalign(void* data, std::size_t bytes) noexcept {
  os::prefer_no_node(data, bytes);
  std::free(data);
}

}  // namespace ropewalk::memory
