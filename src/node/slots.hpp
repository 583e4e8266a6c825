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
    ++sequence_;
    // The slot was last used `slot_count` calls ago. Its readers have left it when they have
    // arrived at the call after that one.
    if (sequence_ >= seen_ + slot_count) [[unlikely]] {
      wait_for_readers();
    }
    return claimed();
  }
  Slot& claimed() noexcept { return blocks_.own->slot[sequence_ % slot_count]; }  // once more
  // Shows the claimed slot; releases everything written before it. `payload` bytes of it were
  // written, and will be, it is assumed, at the next call.
  void arrive(std::size_t payload = 0) noexcept {
    claimed().sequence.store(sequence_, std::memory_order_release);
    blocks_.own->arrived.store(sequence_, std::memory_order_release);
    waits_.wake_sleepers();
    take_next_slot(payload);
  }
  std::uint64_t calls() const noexcept { return sequence_; }  // claimed by this rank
  // This is the slot at the call of the last claim().
  bool has_arrived() const noexcept {
    return blocks_.own->arrived.load(std::memory_order_relaxed) == sequence_;
  }
  // Returns the slot of a rank in the call of the last claim(), once that rank has arrived.
  const Slot& arrival(int rank) {
    const Slot& slot = blocks_.of[rank]->slot[sequence_ % slot_count];
    // Pairs with the release in arrive() of that rank.
    waits_.until([&] { return slot.sequence.load(std::memory_order_acquire) >= sequence_; });
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
  // Fetches lines of the next call's slot, which its last readers have, for writing: all at once,
  // while this call goes on, instead of one after the other when they are written.
  void take_next_slot(std::size_t payload) noexcept {
    if (sequence_ + 1 >= seen_ + slot_count) return;  // they may still be read
    const Slot& next = blocks_.own->slot[(sequence_ + 1) % slot_count];
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
