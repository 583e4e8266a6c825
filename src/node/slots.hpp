// Arrivals: a rank comes to a call by showing a slot that describes it, and sees those of the
// others. It uses its slots in turn and waits before it writes one that may still be read.
#pragma once

#include <cstddef>
#include <cstdint>

#include "node/control.hpp"
#include "node/waits.hpp"
#include "os/relax.hpp"

namespace ropewalk::node {

class Slots {
 public:
  Slots(const ControlBlocks& blocks, Waits& waits) noexcept : blocks_(blocks), waits_(waits) {}

  // Returns the slot of this rank for its next call. Its last readers have left it.
  Slot& claim() {
    const std::uint64_t call = ++sequence_;
    // The slot was last used `slot_count` calls ago. Its readers have left it when they have
    // arrived at the call after that one.
    if (call >= seen_ + slot_count) [[unlikely]] {
      wait_for_readers();
    }
    return blocks_.own->slot[call % slot_count];
  }
  Slot& claimed() noexcept { return blocks_.own->slot[sequence_ % slot_count]; }  // once more
  // Shows the claimed slot; releases everything written before it. `payload` bytes of it were
  // written, and will be, it is assumed, at the next call.
  void arrive(std::size_t payload = 0) noexcept {
    // These are read once: behind a release the compiler would read them again.
    const std::uint64_t call = sequence_;
    Control& own = *blocks_.own;
    own.slot[call % slot_count].sequence.store(call, std::memory_order_release);
    own.arrived.store(call, std::memory_order_release);
    waits_.wake_sleepers();
    if (call + 1 < seen_ + slot_count) take_slot(own.slot[(call + 1) % slot_count], payload);
  }
  // Counts the calls that this rank has claimed. The reference stays valid.
  const std::uint64_t& calls() const noexcept { return sequence_; }
  // This is the slot at the call of the last claim().
  bool has_arrived() const noexcept {
    return blocks_.own->arrived.load(std::memory_order_relaxed) == sequence_;
  }
  // Whether a rank has come to the call of this rank's last claim(), or to a later one.
  bool has_arrived(int rank) const noexcept {
    return blocks_.of[rank]->arrived.load(std::memory_order_relaxed) >= sequence_;
  }
  // The same for a rank that comes while this one looks so many times.
  bool arrives_within(int rank, std::size_t looks) const noexcept {
    while (!has_arrived(rank)) {
      if (looks-- == 0) return false;
      os::relax();
    }
    return true;
  }
  // Returns the slot of a rank in the call of the last claim(), once that rank has arrived.
  const Slot& arrival(int rank) {
    const std::uint64_t call = sequence_;
    const Slot& slot = blocks_.of[rank]->slot[call % slot_count];
    // Pairs with the release in arrive() of that rank.
    waits_.until([&slot, call] { return slot.sequence.load(std::memory_order_acquire) >= call; });
    return slot;
  }
  // To be called when every rank's arrival at this call has been seen: their older slots are free.
  void all_arrived() noexcept { seen_ = sequence_; }

  // ---- for memory that others read for as long as they read a slot

  // Tells that all ranks are known to have arrived at this call, and so to have left those before
  // it.
  std::uint64_t seen() const noexcept { return seen_; }
  // Waits until all others have arrived at this call.
  void wait_for_arrivals(std::uint64_t call);

 private:
  void wait_for_readers();
  // Fetches lines of the next call's slot, which its last readers have left, for writing: all at
  // once, while this call goes on, instead of one after the other when they are written.
  static void take_slot(const Slot& next, std::size_t payload) noexcept {
    const auto* bytes = reinterpret_cast<const std::byte*>(&next);
    os::prefetch_for_writing(bytes);
    if (payload <= Slot::beside_flag_bytes) return;
    for (std::size_t at = 0; at < payload; at += Slot::line_bytes) {
      os::prefetch_for_writing(bytes + Slot::line_bytes + at);
    }
  }

  ControlBlocks blocks_;
  Waits& waits_;
  std::uint64_t sequence_ = 0;  // calls of this rank
  std::uint64_t seen_ = 0;
};

}  // namespace ropewalk::node
