// memfd on pages of 4 KiB: the last rung, always to be had, and the baseline `never`.
#include "memory/mechanism.hpp"
#include "os/pagemap.hpp"

namespace ropewalk::memory {

Backing back_shmem_small(const PageRange& range) {
  Backing result;
  result.shortfall = memory_shortage(range.bytes);
  if (!result.shortfall.empty()) return result;
  os::advise_small(range.data, range.bytes);  // also where the system gives huge pages unasked
  const int error = os::populate_write(range.data, range.bytes, range.descriptor, range.offset);
  if (error != 0) {
    result.shortfall = "populate: " + os::error_text(error);
    return result;
  }
  result.present = true;
  result.huge_bytes = os::summarize_pages(range.data, range.bytes).huge_bytes;
  return result;
}

Block shmem_small_block(std::size_t bytes, const NumaPlacement& placement) {
  return memfd_block(mechanism(PageSource::shmem_small), bytes, placement);
}

}  // namespace ropewalk::memory
