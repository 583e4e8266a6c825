// Tells whether something else keeps the core of the calling thread busy: another program, or other
// threads of this one.
//
// A thread that waits and yields there gets the core back after a time slice of the other, some
// milliseconds later, though what it waits for may take microseconds. One that sleeps is put on the
// core as soon as it is woken: the kernel prefers a thread that has used less than its share. With
// a busy process on each of two cores, 200 allreduces of 64 bytes between two ranks took 1.8 to 4.6
// ms each where the ranks yielded, and 0.04 to 0.4 ms where they slept (Linux 6.18).
#pragma once

#include <algorithm>
#include <cstdint>

namespace ropewalk::os {

class SharedCore {
 public:
  // A yield that takes longer has let another thread work. Nothing wants the core for so long only
  // to look whether it has something to do.
  static constexpr std::int64_t least_slice_ns = 300'000;
  // After such a yield the core counts as shared for so long, twice as long each time that it is
  // found shared at the end, and no longer than the most. So waits lose a slice of some 3 ms at
  // most every 50 ms at first, and every 1.6 s later, and go back to yields when the other is gone.
  static constexpr std::int64_t least_ns = 50'000'000;
  static constexpr std::int64_t most_ns = 1'600'000'000;

  static SharedCore& of_this_thread() noexcept;

  // To be told of each yield.
  void yielded(std::int64_t began_ns, std::int64_t ended_ns) noexcept {
    if (ended_ns - began_ns < least_slice_ns) return;
    const bool again = began_ns < until_ns_ + lasts_ns_;
    lasts_ns_ = again ? std::min(2 * lasts_ns_, most_ns) : least_ns;
    until_ns_ = ended_ns + lasts_ns_;
  }
  bool is_shared(std::int64_t now_ns) const noexcept { return now_ns < until_ns_; }

 private:
  std::int64_t until_ns_ = 0;
  std::int64_t lasts_ns_ = 0;
};

}  // namespace ropewalk::os
