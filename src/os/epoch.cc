#include "os/epoch.hpp"

#include "os/futex.hpp"

namespace ropewalk::os {

void Epoch::advance() noexcept {
  // This is sequentially consistent with sleep(): either we see the sleeper, or it sees the new
  // value.
  value_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) futex_wake(value_);
}

void Epoch::wait_beyond(std::uint32_t before) noexcept {
  Waiting wait(*policy_);
  while (value() == before) {
    wait.pause([&](std::int64_t longest_ns) { sleep(before, longest_ns); });
  }
}

void Epoch::sleep(std::uint32_t before, std::int64_t longest_ns) noexcept {
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  if (value_.load(std::memory_order_seq_cst) == before) futex_wait(value_, before, longest_ns);
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void Barrier::arrive_and_wait(std::uint32_t turn) noexcept {
  // This acquires as well as releases: the last one's advance() then covers what all have written.
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    passed_.advance();
  } else {
    passed_.wait_beyond(turn);
  }
}

}  // namespace ropewalk::os
