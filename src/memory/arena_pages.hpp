// Where the pages of an arena come from: its segment, opened on the best source that the options
// and the machine allow, and the reason why it is not a better one. Not thread-safe: the arena's
// lock covers it.
#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>

#include "memory/segment.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::memory {

class ArenaPages {
 public:
  // With `probe_later`, the first probe() finds out which pages the arena gets: a program that only
  // calls malloc need not know.
  ArenaPages(const MemoryOptions& options, bool probe_later);

  Segment& segment() const noexcept { return *segment_; }
  bool from_pool() const noexcept { return segment_->how().memfd != os::MemfdPages::normal; }

  void probe() noexcept;

  // Makes the pages under the extent present. Returns false, with the reason, where there are none,
  // or none as good as the options require.
  bool back(Extent extent, std::string& reason);
  // The extent gets its pages by first touch, except from a hugetlb pool, which gives them at once:
  // if the pool or a control group refused a page at first touch, that would be SIGBUS. Returns
  // false where there are none.
  bool hand_out(Extent extent);
  // Asks for huge pages under the extent.
  void settle(Extent extent);

  const std::string& downgrade() const noexcept { return downgrade_; }

  // Called in the child of a fork, see fork_policy.hpp.
  bool copy_in_child(std::span<const Extent> live) noexcept;
  void drop_in_child() noexcept;

 private:
  bool open_hugetlb_whole();
  void open_growing(PageSource source);
  void open_collapsed(bool probe_later);
  bool first_granule();
  void choose_collapsed();
  void note(const std::string& shortfall);

  std::unique_ptr<Segment> open(const Mechanism& how, bool guessed) const;

  MemoryOptions options_;
  NumaPlacement placement_;
  bool explicit_range_;  // reserve_bytes was given, not guessed
  std::unique_ptr<Segment> segment_;
  bool needs_probe_ = false;
  bool strict_ = false;  // nothing but huge pages is handed out
  std::string downgrade_;
};

// Throws Error(memory): so many bytes of an arena cannot be had.
[[noreturn]] void refuse(std::size_t bytes, const std::string& reason);

}  // namespace ropewalk::memory
