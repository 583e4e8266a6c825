// The memory of an arena: one sealed memfd, growing from the start of one reserved range, and what
// is known of each of its granules. Not thread-safe: the arena's lock covers it.
#pragma once

#include <atomic>
#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "memory/mechanism.hpp"
#include "memory/private_copy.hpp"

namespace ropewalk::memory {

class Segment {
 public:
  // Nothing is committed yet. Error(memory) where there is no address space or no memfd.
  Segment(const Mechanism& how, os::Mapping range);

  const Mechanism& how() const noexcept { return *how_; }
  std::byte* base() const noexcept { return range_.data(); }
  std::size_t reserved() const noexcept { return range_.bytes(); }
  int descriptor() const noexcept { return file_.get(); }
  // Readable without the lock. [begin, committed) is mapped; begin is 0 but in a child that was
  // refused its parent's memory.
  std::size_t begin() const noexcept { return begin_.load(std::memory_order_acquire); }
  std::size_t committed() const noexcept { return committed_.load(std::memory_order_acquire); }
  std::size_t huge_bytes() const noexcept;
  std::size_t granule() const noexcept { return granule_; }

  // Commits up to `bytes`, rounded up to whole granules; returns why not, else empty text.
  std::string grow(std::size_t bytes);

  // Makes the pages under the extent present. Only new granules cost anything, and, with `strict`,
  // those that stayed small.
  Backing back(Extent extent, bool strict);

  // Gives the granules that lie wholly in the extent back to the kernel.
  void release(Extent extent) noexcept;

  // The pages are not better than this from now on.
  void settle_for(const Mechanism& how) noexcept { how_ = &how; }

  // In the child of a fork, see fork_policy.hpp.
  bool copy(std::span<const Extent> live, const Mechanism& how) noexcept;
  void drop(const Mechanism& how) noexcept;

 private:
  enum class State : unsigned char { empty, small, huge };

  Backing back_run(std::size_t first, std::size_t last);
  void forget_pages() noexcept;

  const Mechanism* how_;
  os::Mapping range_;
  os::Descriptor file_;
  std::size_t granule_;
  std::vector<State> states_;  // by granule
  std::atomic<std::size_t> begin_{0};
  std::atomic<std::size_t> committed_{0};
};

}  // namespace ropewalk::memory
