// Phases of bulk calls: each rank raises its flag at the end of a phase, and waits for the flags of
// those whose memory it uses next. Every rank finishes the same number of phases in every call.
#pragma once

#include <cstdint>

#include "node/control.hpp"
#include "node/waits.hpp"

namespace ropewalk::node {

class Phases {
 public:
  Phases(const ControlBlocks& blocks, Waits& waits) noexcept : blocks_(blocks), waits_(waits) {}

  // Everything this rank wrote is visible to a rank that has seen the phase. Returns its number.
  std::uint64_t finish() noexcept {
    const std::uint64_t phase = ++finished_;
    blocks_.own->phase.store(phase, std::memory_order_release);
    waits_.wake_sleepers();
    return phase;
  }
  // Does the same for a rank that could not do its part. Those that wait for the phase find it.
  std::uint64_t fail() noexcept {
    blocks_.own->failed.store(finished_ + 1, std::memory_order_relaxed);
    return finish();
  }
  // Does the same when nobody waits for this rank in this call: nothing is shown. What a later
  // phase shows covers it.
  std::uint64_t skip() noexcept { return ++finished_; }
  std::uint64_t finished() const noexcept { return finished_; }  // by this rank

  // Waits until the rank has finished that phase.
  void wait_for(int rank, std::uint64_t phase) {
    const auto& flag = blocks_.of[rank]->phase;
    // Pairs with the release in finish() of that rank.
    waits_.until([&flag, phase] { return flag.load(std::memory_order_acquire) >= phase; });
  }
  void wait_for_all(std::uint64_t phase) {
    for (int peer = 0; peer < blocks_.size(); ++peer) {
      if (peer != blocks_.rank) wait_for(peer, phase);
    }
  }
  void barrier() { wait_for_all(finish()); }

  // Returns a rank that failed in a phase that was waited for, or in a later one, so that no
  // failure is lost; -1 for none. Relaxed is enough: it was written before the release of the
  // phase.
  int failed_rank(std::uint64_t phase) const noexcept {
    for (int peer = 0; peer < blocks_.size(); ++peer) {
      if (blocks_.of[peer]->failed.load(std::memory_order_relaxed) >= phase) return peer;
    }
    return -1;
  }

 private:
  ControlBlocks blocks_;
  Waits& waits_;
  std::uint64_t finished_ = 0;
};

}  // namespace ropewalk::node
