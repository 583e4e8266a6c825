// Memory for communication: arenas that other ranks of the node can map, on pages whose size is
// verified.
#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <new>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "ropewalk/error.hpp"
#include "ropewalk/export.hpp"

namespace ropewalk {

// Where pages come from. The first four are the rungs of the ladder, from best to last. The others
// are those of Boyle et al. 2017, section II.C, and its two baselines, to repeat its comparison.
enum class PageSource {
  hugetlb_1g_memfd,   // memfd of 1 GiB pages from the hugetlb pool; only on request
  hugetlb_memfd,      // memfd of 2 MiB pages from the hugetlb pool
  shmem_huge,         // memfd collapsed to 2 MiB pages, no pool and no root
  shmem_small,        // memfd of 4 KiB pages
  anonymous_hugetlb,  // mmap(MAP_ANONYMOUS | MAP_HUGETLB), private
  hugetlbfs_file,     // a file on a mounted hugetlbfs, unlinked at once
  memalign,           // posix_memalign of libc, 4 KiB pages
  thp                 // 2 MiB-aligned, private, on the pages that the system gives unasked
};
RW_EXPORT const char* name(PageSource);                     // "hugetlb-memfd", ...
RW_EXPORT PageSource page_source(const std::string& name);  // Error(argument) lists the names

enum class PagePolicy { require, prefer, never };  // whether pages have to be huge
RW_EXPORT const char* name(PagePolicy);
RW_EXPORT PagePolicy page_policy(const std::string& name);

// What kind of memory a NUMA node has. A node without cores is judged by its bandwidth and latency
// beside those of nodes with cores, as the firmware tells them (ACPI's HMAT), else by the kernel's
// memory tiers. One of which neither says anything has no kind.
enum class MemoryKind {
  ddr,  // ordinary: of a node with cores
  hbm,  // faster, without cores
  cxl   // slower, without cores: CXL, persistent memory
};
RW_EXPORT const char* name(MemoryKind);
RW_EXPORT MemoryKind memory_kind(const std::string& name);  // Error(argument) lists the names

struct MemoryOptions {
  PagePolicy pages = PagePolicy::prefer;
  std::optional<PageSource> source;  // only this rung; Error(memory) where it cannot be had
  // Where the pages lie, by the number of a NUMA node or by the kind of its memory; one of both at
  // most. Nodes of a kind are filled from the nearest on. The kernel is told before a page is
  // touched, and asked afterwards (move_pages). Error(argument) says which nodes there are,
  // Error(memory) why the pages do not lie there. Neither: where the thread runs that touches them.
  std::optional<int> node;
  std::optional<MemoryKind> kind;
  // How many addresses an arena reserves; 0: ROPEWALK_ARENA_BYTES, or half of the machine's memory.
  std::size_t reserve_bytes = 0;
  bool cache = true;  // keep recently freed blocks (footnote 8 of the paper)
};

// A block of zeros from one source, whose pages are verified and present: the thread that made it
// has touched them, and no later access can end in SIGBUS.
class RW_EXPORT PageBlock {
 public:
  PageBlock() = default;
  PageBlock(std::size_t bytes, const MemoryOptions& = {});
  PageBlock(PageBlock&&) noexcept;
  PageBlock& operator=(PageBlock&&) noexcept;
  ~PageBlock();

  std::byte* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }  // as asked for
  std::size_t mapped_bytes() const noexcept { return mapped_; }
  PageSource source() const noexcept { return source_; }
  int descriptor() const noexcept { return descriptor_; }  // -1 where peers cannot map it
  const std::string& downgrade() const noexcept { return downgrade_; }  // why not a better rung

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
  std::size_t mapped_ = 0;
  PageSource source_ = PageSource::shmem_small;
  int descriptor_ = -1;
  std::string downgrade_;
};

struct ArenaStatistics {
  std::uint64_t allocations = 0;
  std::uint64_t cache_hits = 0;
  std::uint64_t cache_misses = 0;
  std::size_t live_bytes = 0;       // handed out
  std::size_t cached_bytes = 0;     // freed and kept
  std::size_t committed_bytes = 0;  // of the memfd
  std::size_t huge_bytes = 0;       // verified on huge pages when handed out
  std::uint64_t ignored_frees = 0;  // calls of deallocate with an address that is no live block
  std::uint64_t refusals = 0;       // blocks that the malloc library left to libc for lack of room

  // Figures of the malloc library, for blocks from its threshold on. It learns which places in the
  // program allocate memory that is communicated, and leaves the others to libc.
  std::uint64_t malloc_bytes = 0;        // handed out so far
  std::uint64_t communicated_bytes = 0;  // of these, were passed to a served call
  std::uint64_t libc_blocks = 0;         // left to libc, since their place does not communicate
  std::uint64_t libc_bytes = 0;
  std::uint64_t learned = 0;    // places whose blocks are left to libc from then on
  std::uint64_t unlearned = 0;  // of these, places that went back to the arena: they communicate
};

// Memory of one rank that every rank of the node can map: a sealed memfd that grows inside one
// reserved address range. So its base never moves, and in another rank an address is that rank's
// own base of the mapping plus an offset. Thread-safe.
class RW_EXPORT Arena {
 public:
  explicit Arena(const MemoryOptions& = {});
  ~Arena();
  Arena(const Arena&) = delete;
  Arena& operator=(const Arena&) = delete;

  // The arena of this process, made at first use by ROPEWALK_PAGES and ROPEWALK_MEMORY. All copies
  // of this library that are loaded, the malloc and MPI libraries among them, have the same.
  static Arena& process();

  // Throws Error(argument) for an alignment that is no power of two, Error(memory) when it is out.
  void* allocate(std::size_t bytes, std::size_t alignment = 128);
  void deallocate(void* address) noexcept;              // null is allowed
  std::size_t usable_bytes(const void* address) const;  // of a live block
  void trim() noexcept;                                 // gives cached blocks back to the kernel

  // Collapses those 2 MiB blocks of a range that still lie on small pages, as memory from malloc
  // does, into verified huge pages. Each block is tried once. The call takes a few nanoseconds when
  // there is nothing to do, otherwise 0.1 to 0.3 s/GiB, during which other threads may use the
  // memory. Addresses outside the arena are ignored.
  void make_huge(const void* address, std::size_t bytes) noexcept;

  // Tells the malloc library that the program communicates this range, wherever it lies, so that
  // later blocks from the same place in the program come from the arena. Takes a few nanoseconds.
  void note_communicated(const void* address, std::size_t bytes) noexcept;

  bool contains(const void* address, std::size_t bytes = 1) const noexcept;
  std::size_t offset(const void* address) const noexcept;  // contains(address) must hold
  std::byte* base() const noexcept;
  std::size_t reserved_bytes() const noexcept;
  std::size_t committed_bytes() const noexcept;  // peers may map this much
  int descriptor() const noexcept;               // -1 where the program has closed it
  PageSource source() const noexcept;
  ArenaStatistics statistics() const;
  std::string downgrade() const;  // why the pages are not better; empty if best

 private:
  struct State;
  explicit Arena(std::unique_ptr<State>);
  std::unique_ptr<State> state_;
};

// An array in the arena of the process. T must be trivially copyable; elements are
// value-initialised.
template <class T>
class Buffer {
 public:
  Buffer() = default;
  explicit Buffer(std::size_t count, Arena& arena = Arena::process())
      : arena_(&arena), count_(count) {
    if (count > SIZE_MAX / sizeof(T)) throw Error(ErrorCode::argument, "count: too many elements");
    data_ = static_cast<T*>(arena.allocate(count * sizeof(T)));
    std::uninitialized_value_construct_n(data_, count);
  }
  Buffer(Buffer&& other) noexcept { swap(other); }
  Buffer& operator=(Buffer&& other) noexcept {
    swap(other);
    return *this;
  }
  ~Buffer() {
    if (data_ != nullptr) arena_->deallocate(data_);
  }

  T* data() const noexcept { return data_; }
  std::size_t size() const noexcept { return count_; }
  std::size_t bytes() const noexcept { return count_ * sizeof(T); }
  T& operator[](std::size_t index) const noexcept { return data_[index]; }
  T* begin() const noexcept { return data_; }
  T* end() const noexcept { return data_ + count_; }

 private:
  void swap(Buffer& other) noexcept {
    std::swap(arena_, other.arena_);
    std::swap(data_, other.data_);
    std::swap(count_, other.count_);
  }
  Arena* arena_ = nullptr;
  T* data_ = nullptr;
  std::size_t count_ = 0;
};

// This is for standard containers: std::vector<double, ropewalk::Allocator<double>>.
template <class T>
struct Allocator {
  using value_type = T;
  Allocator() = default;
  template <class U>
  Allocator(const Allocator<U>&) noexcept {}
  T* allocate(std::size_t count) {
    if (count > SIZE_MAX / sizeof(T)) throw std::bad_array_new_length();
    return static_cast<T*>(
        Arena::process().allocate(count * sizeof(T), std::max<std::size_t>(alignof(T), 128)));
  }
  void deallocate(T* address, std::size_t) noexcept { Arena::process().deallocate(address); }
  template <class U>
  bool operator==(const Allocator<U>&) const noexcept {
    return true;
  }
};

struct PageUse {
  std::size_t page_bytes;  // 4096, 2 MiB, 1 GiB
  std::size_t bytes;       // of the range on such pages
};
// What the kernel says about a range of memory, whoever allocated it.
struct Inspection {
  std::size_t bytes = 0;
  std::size_t resident_bytes = 0;
  std::vector<PageUse> pages;  // by page size, largest first
  std::vector<std::size_t>
      node_bytes;              // resident bytes by NUMA node; empty where the kernel does not tell
  bool peers_can_map = false;  // lies in an arena
  std::size_t alignment = 0;   // largest power of two that divides the address
  std::string method;          // "pagemap-scan" or "smaps"
  bool all_huge() const noexcept;  // every resident byte on pages of 2 MiB or more
};
// Throws Error(argument) where the range is not mapped whole.
RW_EXPORT Inspection inspect(const void* address, std::size_t bytes);

}  // namespace ropewalk
