// The memory of an arena: one sealed memfd, growing from the start of one reserved range, and the
// pages of its granules. Not thread-safe: the arena's lock covers it.
//
// A child never has the mapping: the fork handlers replace it by a copy of its own, and in a child
// that is cloned without them nothing is mapped there (MADV_DONTFORK, which is lifted only around a
// fork).
#pragma once

#include <sys/types.h>

#include <cstddef>
#include <span>
#include <string>

#include "memory/arena_range.hpp"
#include "memory/granules.hpp"
#include "memory/mechanism.hpp"
#include "memory/private_copy.hpp"

namespace ropewalk::memory {

class Segment {
 public:
  // Nothing is committed yet. Throws Error(memory) where there is no address space or no memfd.
  Segment(const Mechanism& how, os::Mapping range, NumaPlacement placement);

  const Mechanism& how() const noexcept { return *how_; }
  // Says where the segment lies, and can be read without the lock.
  const ArenaRange& range() const noexcept { return range_; }
  Granules& granules() noexcept { return granules_; }
  void watch(const BlockWatch* watch) noexcept {
    range_.watch.store(watch, std::memory_order_release);
  }
  std::size_t begin() const noexcept { return range_.begin.load(std::memory_order_acquire); }
  std::size_t committed() const noexcept {
    return range_.committed.load(std::memory_order_acquire);
  }

  // Returns -1 where the program has closed it: daemons close all descriptors. The mapping remains.
  int descriptor() const noexcept;

  // Commits up to `bytes`, rounded up to whole granules; returns why not, else empty text.
  std::string grow(std::size_t bytes);

  // Makes the pages under the extent present. Only new granules cost anything, and, with `strict`,
  // those that stayed small.
  Backing back(Extent extent, bool strict);

  // Asks for huge pages under the extent, once for each granule.
  Backing settle(Extent extent);

  // Gives the granules that lie wholly in the extent back to the kernel.
  void release(Extent extent) noexcept;

  // The extent, whole small pages of live blocks, reads as zero afterwards and has no pages if that
  // can be; with `locked_too` also where they are locked in memory. Returns an errno.
  int discard(Extent extent, bool locked_too) noexcept;

  // Zeroes those parts of the extent that may not read as zero; pages that were never touched are
  // not made. Needs no lock; `file` is the descriptor, -1 to zero it all.
  static void clear(int file, std::byte* base, Extent extent) noexcept;

  // From now on the pages are taken to be no better than this.
  void settle_for(const Mechanism& how) noexcept { how_ = &how; }

  // Whether a child has the mapping. Around a fork it has, so that no other mapping is placed there
  // before it is replaced.
  void leave_to_child(bool leave) noexcept;
  // Called in the child of a fork, see fork_policy.hpp.
  bool copy(std::span<const Extent> live, const Mechanism& how) noexcept;
  void drop(const Mechanism& how) noexcept;

 private:
  Backing back_run(Granules::Run run);
  template <class Done>
  Backing back_where_not(Extent extent, const Done& done);
  void note_pool() noexcept;
  int zero(Extent extent) noexcept;
  void remember_file() noexcept;
  void wish_pages(void* address, std::size_t bytes) const noexcept;

  const Mechanism* how_;
  NumaPlacement placement_;
  os::Mapping mapping_;
  Granules granules_;
  os::Descriptor file_;
  dev_t device_ = 0;  // of the file, to know it again
  ino_t inode_ = 0;
  ArenaRange range_;
};

}  // namespace ropewalk::memory
