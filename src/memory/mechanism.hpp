// The ways to get pages, a file each, and the table of them. A mechanism makes the pages of a range
// present, checks with the kernel what they are, and says in words what is short and which one
// command mends it. Nothing here decides which mechanism to take: that is the ladder's.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

#include "memory/numa_placement.hpp"
#include "os/file.hpp"
#include "os/mapping.hpp"
#include "os/memfd.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::memory {

// This is mapped memory that is to get its pages.
struct PageRange {
  std::byte* data;
  std::size_t bytes;
  int descriptor;        // -1: anonymous
  std::uint64_t offset;  // of data in the file
};

struct Backing {
  bool present = false;        // every page is there: no touch can be SIGBUS
  std::size_t huge_bytes = 0;  // verified on pages of 2 MiB or more
  std::string shortfall;       // why it is not present, or not all huge; empty if all is well
};

// A block is memory of its own, ready to use, or the reason why not.
struct Block {
  os::Mapping mapping;
  os::Descriptor descriptor;
  Backing backing;
};

struct Mechanism {
  PageSource source;
  std::size_t page_bytes;               // ranges and offsets are multiples of it
  bool huge;                            // it promises pages of 2 MiB or more
  std::optional<os::MemfdPages> memfd;  // an arena can grow on it
  // bytes: a multiple of page_bytes. The pages lie where the placement says, unless the kernel had
  // none there: that is still to be verified.
  Block (*block)(std::size_t bytes, const NumaPlacement&);
  Backing (*back)(const PageRange&);  // memfd mechanisms only
};

const Mechanism& mechanism(PageSource);

// One function a mechanism, in the file of its name.
Block hugetlb_1g_memfd_block(std::size_t bytes, const NumaPlacement&);
Block hugetlb_memfd_block(std::size_t bytes, const NumaPlacement&);
Block shmem_huge_block(std::size_t bytes, const NumaPlacement&);
Block shmem_small_block(std::size_t bytes, const NumaPlacement&);
Block anonymous_hugetlb_block(std::size_t bytes, const NumaPlacement&);
Block hugetlbfs_file_block(std::size_t bytes, const NumaPlacement&);
Block memalign_block(std::size_t bytes, const NumaPlacement&);
Block thp_block(std::size_t bytes, const NumaPlacement&);

Backing back_hugetlb(const PageRange&);
Backing back_hugetlb_1g(const PageRange&);
Backing back_shmem_huge(const PageRange&);
Backing back_shmem_small(const PageRange&);

// ---- shared by the mechanisms -------------------------------------------------------------------

// Returns a memfd of the mechanism, grown to `bytes`, mapped and backed.
Block memfd_block(const Mechanism&, std::size_t bytes, const NumaPlacement&);
// Returns a file of 2 MiB hugetlb pages that already has its size, mapped and backed.
Block map_hugetlb_file(os::Descriptor file, std::size_t bytes, const NumaPlacement&);
// Tells the kernel where the pages of the mapping are to lie; false where it refuses, with the
// reason in the backing.
bool bind(Block&, const NumaPlacement&);
// Gives back what memalign_block returned. The kernel is told to forget the placement first, since
// libc may keep the pages for other blocks.
void free_memalign(void* data, std::size_t bytes) noexcept;

// Why `bytes` more of a hugetlb pool cannot be had, and the command that mends it.
std::string explain_pool(std::size_t page_bytes, std::size_t bytes, int error);
// Returns the reason where taking `bytes` of ordinary memory would make the kernel kill; else
// empty.
std::string memory_shortage(std::size_t bytes);
// Returns the text for a mapping or file that a memfd mechanism was refused.
std::string explain_refusal(const Mechanism&, const char* call, std::size_t bytes, int error);

}  // namespace ropewalk::memory
