#include "memory/mechanism.hpp"

#include <array>
#include <cerrno>

#include "os/hugepool.hpp"

namespace ropewalk::memory {
namespace {

constexpr std::size_t small_page = 4096;  // granularity; a larger kernel page divides 2 MiB anyway

constexpr std::array<Mechanism, 8> table{{
    {PageSource::hugetlb_1g_memfd, os::gib, true, os::MemfdPages::hugetlb_1g,
     hugetlb_1g_memfd_block, back_hugetlb_1g},
    {PageSource::hugetlb_memfd, os::huge_2m, true, os::MemfdPages::hugetlb_2m, hugetlb_memfd_block,
     back_hugetlb},
    {PageSource::shmem_huge, os::huge_2m, true, os::MemfdPages::normal, shmem_huge_block,
     back_shmem_huge},
    {PageSource::shmem_small, small_page, false, os::MemfdPages::normal, shmem_small_block,
     back_shmem_small},
    {PageSource::anonymous_hugetlb, os::huge_2m, true, std::nullopt, anonymous_hugetlb_block,
     nullptr},
    {PageSource::hugetlbfs_file, os::huge_2m, true, std::nullopt, hugetlbfs_file_block, nullptr},
    {PageSource::memalign, small_page, false, std::nullopt, memalign_block, nullptr},
    {PageSource::thp, small_page, false, std::nullopt, thp_block, nullptr},
}};

const char* size_name(std::size_t page_bytes) { return page_bytes == os::gib ? "1 GiB" : "2 MiB"; }

}  // namespace

const Mechanism& mechanism(PageSource source) {
  for (const Mechanism& entry : table) {
    if (entry.source == source) return entry;
  }
  throw Error(ErrorCode::argument, "source: no such page source; pass a value of PageSource");
}

bool bind(Block& block, const NumaPlacement& placement) {
  block.backing.shortfall = placement.bind(block.mapping.data(), block.mapping.bytes());
  return block.backing.shortfall.empty();
}

Block memfd_block(const Mechanism& how, std::size_t bytes, const NumaPlacement& placement) {
  Block block;
  block.descriptor = os::open_memfd("ropewalk-block", *how.memfd);
  if (!block.descriptor) {
    block.backing.shortfall = explain_refusal(how, "memfd_create", bytes, errno);
    return block;
  }
  if (const int error = os::grow_file(block.descriptor.get(), bytes)) {
    block.backing.shortfall = explain_refusal(how, "ftruncate", bytes, error);
    return block;
  }
  // All mechanisms align to huge pages: small pages gain nothing by another alignment, and tests
  // compare like with like.
  const std::size_t alignment = how.page_bytes > os::huge_2m ? how.page_bytes : os::huge_2m;
  block.mapping = os::map_shared(block.descriptor.get(), bytes, 0, alignment);
  if (!block.mapping) {
    block.backing.shortfall = explain_refusal(how, "mmap", bytes, errno);
    return block;
  }
  if (!bind(block, placement)) return block;
  block.backing = how.back({block.mapping.data(), bytes, block.descriptor.get(), 0});
  return block;
}

std::string explain_pool(std::size_t page_bytes, std::size_t bytes, int error) {
  const std::string size = size_name(page_bytes);
  const auto pool = os::read_huge_pool(page_bytes);
  if (!pool) return "this kernel has no hugetlb pages of " + size;
  const std::size_t needed = (bytes + page_bytes - 1) / page_bytes;
  const auto missing = needed > pool->available() ? needed - pool->available() : 0;
  std::string text = "the pool of " + size + " pages has " + std::to_string(pool->available()) +
                     " of " + std::to_string(pool->total) + " free, " + std::to_string(needed) +
                     " needed";
  if (missing > 0 && page_bytes == os::huge_2m) {
    text += "; run `ropewalk hugepages reserve " + std::to_string(pool->total + missing) + "`";
  } else if (missing > 0) {
    text += "; as root: `echo " + std::to_string(pool->total + missing) +
            " > /sys/kernel/mm/hugepages/hugepages-1048576kB/nr_hugepages`";
  } else {
    text += ", yet the kernel says " + os::error_text(error) +
            "; look for a hugetlb limit of this cgroup (`ropewalk doctor`)";
  }
  return text;
}

std::string memory_shortage(std::size_t bytes) {
  const os::MemoryLimit room = os::available_memory();
  if (bytes <= room.bytes) return {};
  return std::to_string(bytes) + " bytes asked for, " + std::to_string(room.bytes) + " left by " +
         room.name + "; ask for less, or raise the limit";
}

std::string explain_refusal(const Mechanism& how, const char* call, std::size_t bytes, int error) {
  const bool pool = how.memfd != os::MemfdPages::normal;
  if (pool && (error == ENOMEM || error == EINVAL || error == ENOSPC || error == EFAULT)) {
    return explain_pool(how.page_bytes, bytes, error);
  }
  std::string text =
      std::string(call) + " of " + std::to_string(bytes) + " bytes: " + os::error_text(error);
  if (error == EFBIG) text += "; raise the limit with `ulimit -f unlimited`";
  if (error == EMFILE) text += "; raise the limit with `ulimit -n`";
  if (error == ENOMEM) text += "; raise the limit with `ulimit -v unlimited`";
  return text;
}

}  // namespace ropewalk::memory
