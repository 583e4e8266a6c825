#include "node/slots.hpp"

#include <algorithm>

namespace ropewalk::node {

// A reader of call k's slot has left it when it has arrived at call k + 1. Half of the slots are
// waited for, not one: a sender that is faster than its readers then looks at their lines every few
// calls, instead of taking them away at each. Where ranks share cores it waits for all, since every
// wait costs a time slice. No rank needs this rank's arrival at the call to get so far, so this
// wait ends.
void Slots::wait_for_readers() {
  wait_for_arrivals(sequence_ - (waits_.crowded() ? 1 : slot_count / 2));
}

void Slots::wait_for_arrivals(std::uint64_t call) {
  std::uint64_t oldest = sequence_;
  for (int rank = 0; rank < blocks_.size(); ++rank) {
    if (rank == blocks_.rank) continue;
    std::uint64_t arrived = 0;
    waits_.until([&] {
      // Pairs with the release in arrive() of that rank: it has read what it had to read before.
      arrived = blocks_.of[rank]->arrived.load(std::memory_order_acquire);
      return arrived >= call;
    });
    oldest = std::min(oldest, arrived);
  }
  seen_ = oldest;
}

}  // namespace ropewalk::node
