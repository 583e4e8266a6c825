// What a walk of the page table costs: dependent loads, each in another page, and the processor's
// own count of TLB misses.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>

namespace ropewalk::bench {

// One access to each 4 KiB of a range, in random order, each at an address that the one before has
// loaded. Caches hold such a chain up to 64 times better than the range (one line in 4 KiB), so
// between that and the reach of the TLB the time of a load is that of a walk.
class PointerChase {
 public:
  // Overwrites one line in each 4 KiB of the range, which begins at a cache line.
  PointerChase(std::byte* data, std::size_t bytes, unsigned seed);

  std::size_t loads() const noexcept { return loads_; }  // of one round through the range
  // Goes round so many times, and returns the line it has come to, which is the first one.
  const void* go(int rounds) const;
  const void* begin() const noexcept { return first_; }

 private:
  std::byte* first_ = nullptr;
  std::size_t loads_ = 0;
};

// Counts the loads of this thread whose address was in no TLB (perf_event_open, in user code).
class TlbMissCounter {
 public:
  TlbMissCounter();
  ~TlbMissCounter();
  TlbMissCounter(const TlbMissCounter&) = delete;
  TlbMissCounter& operator=(const TlbMissCounter&) = delete;

  // Empty where they can be counted; else why not, and what to do.
  const std::string& refusal() const noexcept { return refusal_; }
  void start() noexcept;
  // Returns how many since start(); nothing where they cannot be counted.
  std::optional<std::uint64_t> stop() noexcept;

 private:
  int event_ = -1;
  std::string refusal_;
};

}  // namespace ropewalk::bench
