// What every call asks of an arena: is this address in it, and are its pages settled? Plain data,
// read without a lock, also by other copies of this library in the process (process_arena.hpp): its
// layout is part of that interface.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

namespace ropewalk::memory {

// What is known of a granule, the unit in which an arena gets and gives back its pages.
enum class Pages : unsigned char {
  none,     // none, as far as we know: never handed out, or given back since
  touched,  // handed out, by first touch of the owner: any number of pages, huge or not
  small,    // all present, and no huge page could be had
  huge      // verified on pages of 2 MiB or more
};

struct BlockWatch;

struct ArenaRange {
  std::byte* base = nullptr;
  std::size_t reserved = 0;
  // [begin, committed) is mapped; begin is 0 but in a child that was refused its parent's memory.
  // Release stores, after the mapping; whoever reads them (acquire) finds the range mapped.
  std::atomic<std::size_t> begin{0};
  std::atomic<std::size_t> committed{0};
  std::size_t granule = 1;
  // There is an entry for each granule. Relaxed is enough: they say what has been tried, and nobody
  // reads memory because of them.
  std::atomic<Pages>* pages = nullptr;
  // The pages come from a hugetlb pool: what is given back to it may not be had again.
  std::atomic<bool> pooled{false};
  // It is null where nobody asks what is communicated. It is stored once, with release; an acquire
  // finds it complete.
  std::atomic<const BlockWatch*> watch{nullptr};

  bool contains(const void* address, std::size_t bytes) const noexcept {
    const auto start = reinterpret_cast<std::uintptr_t>(base);
    const auto at = reinterpret_cast<std::uintptr_t>(address);
    // Acquire pairs with the release of Segment::grow: what is below is mapped.
    const std::size_t end = committed.load(std::memory_order_acquire);
    return at >= start + begin.load(std::memory_order_acquire) && at - start <= end &&
           bytes <= end - (at - start);
  }

  // Nothing is left to try for the pages of a range that lies in the arena.
  bool settled(const void* address, std::size_t bytes) const noexcept {
    const auto offset = static_cast<std::size_t>(static_cast<const std::byte*>(address) - base);
    const std::size_t last = (offset + bytes + granule - 1) / granule;
    for (std::size_t at = offset / granule; at < last; ++at) {
      if (pages[at].load(std::memory_order_relaxed) < Pages::small) return false;
    }
    return true;
  }
};

}  // namespace ropewalk::memory
