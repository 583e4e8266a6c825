// memfd on 2 MiB pages without a pool and without root: one small page is touched in each 2 MiB,
// then MADV_COLLAPSE (Linux 6.1) puts the block on a huge page, whatever the system's setting for
// transparent huge pages says. 0.13 to 0.3 s/GiB on Linux 6.18, two thirds of it zeroing.
#include <sched.h>

#include <cerrno>

#include "memory/mechanism.hpp"
#include "os/pagemap.hpp"

namespace ropewalk::memory {
namespace {

// Collapsing needs the page off the processors' pending lists and unpinned: EAGAIN and EBUSY pass.
constexpr int attempts = 4;

bool passes(int error) { return error == EAGAIN || error == EBUSY || error == ENOMEM; }

std::size_t huge_bytes(const std::byte* data, std::size_t bytes) {
  return os::summarize_pages(data, bytes).huge_bytes;
}

std::string explain_collapse(std::size_t bytes, std::size_t huge, int error) {
  const std::size_t small_blocks = (bytes - huge) / os::huge_2m;
  std::string text = std::to_string(small_blocks) + " of " + std::to_string(bytes / os::huge_2m) +
                     " blocks of 2 MiB stayed on small pages: MADV_COLLAPSE: ";
  if (error == 0) {
    return text +
           "no error, yet /proc/self/pagemap does not show huge pages, or this process may "
           "not read it (prctl PR_SET_DUMPABLE)";
  }
  text += os::error_text(error);
  if (error == EINVAL) return text + "; needs Linux 6.1 with transparent huge pages built in";
  return text + "; memory is fragmented: run `ropewalk hugepages reserve " +
         std::to_string(bytes / os::huge_2m) + "`";
}

// Touches the first page of each block, and returns an error instead of raising SIGBUS.
int touch_blocks(const PageRange& range) {
  for (std::size_t at = 0; at < range.bytes; at += os::huge_2m) {
    const int error =
        os::populate_write(range.data + at, os::page_bytes(), range.descriptor, range.offset + at);
    if (error != 0) return error;
  }
  return 0;
}

// The whole range is tried in one call first, because each call drains the lists of all processors,
// which is slow while spinning ranks own them. Only blocks that stayed small are asked for again.
int collapse_blocks(const PageRange& range) {
  int error = os::collapse(range.data, range.bytes);
  for (int attempt = 1; error != 0 && passes(error) && attempt < attempts; ++attempt) {
    sched_yield();
    error = 0;
    for (std::size_t at = 0; at < range.bytes; at += os::huge_2m) {
      if (huge_bytes(range.data + at, os::huge_2m) == os::huge_2m) continue;
      const int failed = os::collapse(range.data + at, os::huge_2m);
      if (failed != 0) error = failed;
    }
  }
  return error;
}

}  // namespace

Backing back_shmem_huge(const PageRange& range) {
  Backing result;
  result.shortfall = memory_shortage(range.bytes);
  if (!result.shortfall.empty()) return result;
  os::advise_huge(range.data, range.bytes);  // where the system honours it, the touch does it all
  if (const int error = touch_blocks(range)) {
    result.shortfall = "populate: " + os::error_text(error);
    return result;
  }
  const int refused = collapse_blocks(range);
  result.huge_bytes = huge_bytes(range.data, range.bytes);
  result.present = true;
  if (result.huge_bytes == range.bytes) return result;
  result.shortfall = explain_collapse(range.bytes, result.huge_bytes, refused);
  const int error = os::populate_write(range.data, range.bytes, range.descriptor, range.offset);
  if (error != 0) {
    result.present = false;
    result.shortfall = "populate: " + os::error_text(error);
  }
  return result;
}

Block shmem_huge_block(std::size_t bytes, const NumaPlacement& placement) {
  return memfd_block(mechanism(PageSource::shmem_huge), bytes, placement);
}

}  // namespace ropewalk::memory
