// The calls of a rank: it arrives at each call with a slot whose header describes the call. A rank
// that reads the slot of another finds out whether both make the same call.
#pragma once

#include <cstddef>
#include <cstdint>

#include "node/team.hpp"

namespace ropewalk::collectives {

enum class Kind : std::uint8_t {
  barrier = 1,
  allreduce,
  reduce,
  scan,
  exscan,
  reduce_scatter,
  broadcast,
  allgather,
  gather,
  scatter,
  alltoall,
  neighbours
};
const char* name(Kind);

class Arrivals {
 public:
  explicit Arrivals(node::Team& team) noexcept : team_(team) {}

  // Claims the slot of the next call and fills its header.
  node::Slot& claim(Kind kind, std::uint64_t count, std::uint32_t type_and_op = 0,
                    std::uint32_t root = 0) {
    node::Slot& slot = team_.slots().claim();
    slot.call = std::uint64_t{static_cast<std::uint8_t>(kind)} << 56 |
                std::uint64_t{type_and_op & 0xffffffU} << 32 | root;
    slot.count = count;
    return slot;
  }
  // The slot of `peer`, once it has arrived; remembers whether its header differs from ours.
  const node::Slot& of(int peer, const node::Slot& own) {
    const node::Slot& slot = team_.slots().arrival(peer);
    if (slot.call != own.call || slot.count != own.count) [[unlikely]] {
      differs_ = peer;
    }
    return slot;
  }
  // Returns the slot of a rank that has come to this call, or comes before it would be quicker to
  // copy so many bytes than to wait; null otherwise, or where it makes another call. This rank need
  // not have arrived. Where ranks share cores, it does not wait.
  const node::Slot* soon(int peer, const node::Slot& own, std::size_t bytes) {
    const std::size_t looks = team_.waits().crowded() ? 0 : bytes / bytes_a_look;
    if (!team_.slots().arrives_within(peer, looks)) return nullptr;
    const node::Slot& slot = team_.slots().arrival(peer);
    return slot.call == own.call && slot.count == own.count ? &slot : nullptr;
  }
  // Throws where one of the headers seen differs from ours; then it does so on every rank that has
  // seen all of them.
  void check(const node::Slot& own) {
    if (differs_ >= 0) [[unlikely]] {
      mismatch(own);
    }
  }
  // Waits until all ranks have arrived, and checks their headers.
  void wait_for_all(const node::Slot& own) {
    for (int peer = 0; peer < team_.size(); ++peer) {
      if (peer != team_.rank()) of(peer, own);
    }
    team_.slots().all_arrived();
    check(own);
  }

  // ---- a rank that cannot make its call still arrives, so that the others do not wait for it

  // Arrives at the next call with a header that nobody else has.
  void refuse();
  // Does the same where the slot has been claimed.
  void refuse_claimed();
  // Does what must come between the claim and the arrival; where that fails, refuses the call.
  template <class Prepare>
  auto or_refuse(Prepare prepare) {
    try {
      return prepare();
    } catch (...) {
      refuse_claimed();
      throw;
    }
  }
  // Refuses all calls to come. Does nothing in a child of fork, whose parent goes on.
  void leave_for_good();
  // Forgets the headers of a call that is given up.
  void forget() noexcept { differs_ = -1; }

 private:
  // A look takes 10 to 50 ns, in which a core copies a quarter of what it does in as much time as
  // copying takes that goes through the arena.
  static constexpr std::size_t bytes_a_look = 1024;
  void arrive_with(std::uint64_t call);
  [[noreturn]] void mismatch(const node::Slot& own);

  node::Team& team_;
  int differs_ = -1;  // a rank whose header differs from ours, in the call under way
};

}  // namespace ropewalk::collectives
