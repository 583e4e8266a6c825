// mmap(MAP_ANONYMOUS | MAP_HUGETLB), the first of the paper's two ways (Boyle et al. 2017, section
// II.C). The memory is private: peers cannot map it.
#include <linux/memfd.h>
#include <sys/mman.h>

#include <cerrno>

#include "memory/mechanism.hpp"

namespace ropewalk::memory {

Block anonymous_hugetlb_block(std::size_t bytes, const NumaPlacement& placement) {
  Block block;
  constexpr int size_2m = 21 << MFD_HUGE_SHIFT;  // MAP_HUGE_2MB has the same encoding
  void* found = mmap(nullptr, bytes, PROT_READ | PROT_WRITE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_HUGETLB | size_2m, -1, 0);
  if (found == MAP_FAILED) {
    block.backing.shortfall = explain_pool(os::huge_2m, bytes, errno);
    return block;
  }
  block.mapping = os::Mapping(found, bytes);
  if (!bind(block, placement)) return block;
  block.backing = back_hugetlb({block.mapping.data(), bytes, -1, 0});
  return block;
}

}  // namespace ropewalk::memory
