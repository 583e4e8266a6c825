#include "os/waiting.hpp"

#include <sched.h>

#include "os/clock.hpp"
#include "os/futex.hpp"
#include "os/relax.hpp"

namespace ropewalk::os {
namespace {

// Some 50 us: what lies between two loops of a solver on one rank.
constexpr unsigned spins = 4096;
constexpr unsigned spins_when_crowded = 16;
// A wake-up costs 5 us, and 50 us in a virtual machine: worth some waiting, but not the core.
constexpr std::int64_t awake_ns = 1'000'000;
constexpr unsigned yields_per_clock = 8;
constexpr unsigned yields_when_crowded = 32;
// Insurance only: a wake-up cannot be missed.
constexpr std::int64_t longest_sleep_ns = 1'000'000'000;

}  // namespace

void Epoch::advance() noexcept {
  // Sequentially consistent with sleep(): either we see the sleeper, or it sees the new value.
  value_.fetch_add(1, std::memory_order_seq_cst);
  if (sleepers_.load(std::memory_order_seq_cst) != 0) futex_wake(value_);
}

void Epoch::wait_beyond(std::uint32_t before) noexcept {
  for (unsigned spin = crowded_ ? spins_when_crowded : spins; spin > 0; --spin) {
    if (changed(before)) return;
    relax();
  }
  if (stay_awake(before)) return;
  while (!changed(before)) sleep(before);
}

bool Epoch::stay_awake(std::uint32_t before) const noexcept {
  const std::int64_t until = steady_ns() + awake_ns;
  for (unsigned yields = 1; !changed(before); ++yields) {
    sched_yield();
    if (crowded_ && yields == yields_when_crowded) return false;
    if (yields % yields_per_clock == 0 && steady_ns() > until) return false;
  }
  return true;
}

void Epoch::sleep(std::uint32_t before) noexcept {
  sleepers_.fetch_add(1, std::memory_order_seq_cst);
  if (value_.load(std::memory_order_seq_cst) == before) {
    futex_wait(value_, before, longest_sleep_ns);
  }
  sleepers_.fetch_sub(1, std::memory_order_relaxed);
}

void Meeting::arrive_and_wait(std::uint32_t turn) noexcept {
  // Acquire as well as release: the last one's advance() then covers what all have written.
  if (arrived_.fetch_add(1, std::memory_order_acq_rel) + 1 == size_) {
    arrived_.store(0, std::memory_order_relaxed);
    passed_.advance();
  } else {
    passed_.wait_beyond(turn);
  }
}

}  // namespace ropewalk::os
