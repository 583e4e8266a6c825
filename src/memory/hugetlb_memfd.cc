// This mechanism is a memfd of pages from the hugetlb pool. The kernel promises the pages when the
// file is mapped; they are made present before anyone gets them, because the limit of a hugetlb
// cgroup is only checked then, and would else be SIGBUS.
#include <cerrno>

#include "memory/mechanism.hpp"
#include "os/pagemap.hpp"

namespace ropewalk::memory {

namespace {

Backing back_pool(const PageRange& range, std::size_t page_bytes) {
  Backing result;
  const int error = os::populate_write(range.data, range.bytes, range.descriptor, range.offset);
  if (error != 0) {
    result.shortfall = explain_pool(page_bytes, range.bytes, error);
    return result;
  }
  result.present = true;
  result.huge_bytes = os::summarize_pages(range.data, range.bytes).huge_bytes;
  if (result.huge_bytes < range.bytes) {
    result.shortfall = "the kernel shows small pages on a hugetlb mapping";
  }
  return result;
}

}  // namespace

Backing back_hugetlb(const PageRange& range) { return back_pool(range, os::huge_2m); }
Backing back_hugetlb_1g(const PageRange& range) { return back_pool(range, os::gib); }

Block map_hugetlb_file(os::Descriptor file, std::size_t bytes, const NumaPlacement& placement) {
  Block block;
  block.mapping = os::map_shared(file.get(), bytes, 0, os::huge_2m);
  if (!block.mapping) {
    block.backing.shortfall = explain_pool(os::huge_2m, bytes, errno);
    return block;
  }
  if (!bind(block, placement)) return block;
  block.backing = back_hugetlb({block.mapping.data(), bytes, file.get(), 0});
  block.descriptor = std::move(file);
  return block;
}

Block hugetlb_memfd_block(std::size_t bytes, const NumaPlacement& placement) {
  return memfd_block(mechanism(PageSource::hugetlb_memfd), bytes, placement);
}

Block hugetlb_1g_memfd_block(std::size_t bytes, const NumaPlacement& placement) {
  return memfd_block(mechanism(PageSource::hugetlb_1g_memfd), bytes, placement);
}

}  // namespace ropewalk::memory
