// What is known of each granule of an arena: whether it has pages, and which. Not thread-safe: the
// arena's lock covers it, but for single looks and for granules that get worse.
#pragma once

#include <atomic>
#include <cstddef>
#include <memory>

#include "memory/arena_range.hpp"
#include "memory/private_copy.hpp"

namespace ropewalk::memory {

class Granules {
 public:
  // There are `reserved` bytes in granules of `bytes`, none of which has pages.
  Granules(std::size_t reserved, std::size_t bytes);

  // The granules [first, end) that hold a byte of the extent, by number.
  struct Run {
    std::size_t first;
    std::size_t end;
  };
  Run around(Extent extent) const noexcept {
    return {extent.offset / bytes_, (extent.offset + extent.bytes + bytes_ - 1) / bytes_};
  }

  Pages at(std::size_t granule) const noexcept {
    return pages_[granule].load(std::memory_order_relaxed);
  }
  void set(Run run, Pages pages) noexcept;
  // Granules of the run that are worse become this.
  void raise(Run run, Pages pages) noexcept;
  // Granules of the run that are better become this.
  void lower(Run run, Pages pages) noexcept;

  // The extent gets its pages by first touch of whoever is given it.
  void hand_out(Extent extent) noexcept { raise(around(extent), Pages::touched); }
  // The granule in the middle has no pages; only useful for extents of several granules.
  bool is_untouched(Extent extent) const noexcept {
    return at((extent.offset + extent.bytes / 2) / bytes_) == Pages::none;
  }
  // Counts the bytes of the run that are on huge pages.
  std::size_t huge_bytes(Run run) const noexcept;

  std::atomic<Pages>* data() const noexcept { return pages_.get(); }

 private:
  std::size_t bytes_;  // of one
  std::unique_ptr<std::atomic<Pages>[]> pages_;
};

}  // namespace ropewalk::memory
