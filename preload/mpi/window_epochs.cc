#include "window_epochs.hpp"

#include <sched.h>

#include <algorithm>
#include <utility>

#include "mpi/mpi.hpp"
#include "mpi/progress.hpp"
#include "os/clock.hpp"

namespace ropewalk::preload::onesided {
namespace {

std::size_t index(int rank) noexcept { return static_cast<std::size_t>(rank); }

// Whether 5 ms have passed since the last time, as in other waits (os/waiting.hpp).
bool is_due(std::int64_t& last_ns) noexcept {
  const std::int64_t now = os::steady_ns();
  if (now - last_ns < 5'000'000) return false;
  last_ns = now;
  return true;
}

}  // namespace

std::size_t WindowBoard::bytes(std::size_t ranks) noexcept {
  return desks_at + ranks * sizeof(WindowDesk) + 2 * ranks * ranks * sizeof(std::uint64_t);
}

WindowEpochs::WindowEpochs(WindowBoard board, std::size_t rank, Peers peers, bool crowded)
    : board_(board),
      peers_(std::move(peers)),
      waits_(board.sleepers(), peers_, static_cast<int>(peers_.size())),
      rank_(rank),
      ranks_(peers_.size()),
      reached_(ranks_),
      seen_posts_(ranks_),
      seen_completions_(ranks_),
      threads_(mpi::thread_level() == mpi::ThreadLevel::multiple) {
  if (crowded) waits_.share_cores();
}

// The counter is raised by each rank and acquired by all: each sees what the others wrote before.
void WindowEpochs::fence() {
  std::atomic<std::uint64_t>& fenced = board_.fenced();
  const std::uint64_t all = ++fences_ * ranks_;
  fenced.fetch_add(1, std::memory_order_acq_rel);
  waits_.wake_sleepers();
  waits_.until([&] { return fenced.load(std::memory_order_acquire) >= all; });
  fenced_ = true;
}

void WindowEpochs::enter_shared(WindowDesk& desk) {
  desk.lock.lock_shared([&](const auto& ready) { desk.lock_waiters.until(waits_, ready); });
  desk.lock_waiters.wake(waits_);  // readers behind this one
}

bool WindowEpochs::lock(std::size_t target, bool exclusive, bool check) {
  if (holds(target)) return false;
  WindowDesk& desk = board_.desk(target);
  if (!check) {
    reached_[target] |= unchecked;
    std::atomic_thread_fence(std::memory_order_seq_cst);
  } else if (exclusive) {
    desk.lock.lock([&](const auto& ready) { desk.lock_waiters.until(waits_, ready); });
    reached_[target] |= exclusively;
  } else {
    enter_shared(desk);
    reached_[target] |= shared;
  }
  return true;
}

bool WindowEpochs::unlock(std::size_t target) {
  const std::uint8_t how = reached_[target] & locked;
  if (how == 0) return false;
  reached_[target] &= static_cast<std::uint8_t>(~locked);
  std::atomic_thread_fence(std::memory_order_seq_cst);
  WindowDesk& desk = board_.desk(target);
  if (how == exclusively) desk.lock.unlock();
  if (how == shared) desk.lock.unlock_shared();
  desk.lock_waiters.wake(waits_);
  return true;
}

bool WindowEpochs::holds_any() const noexcept {
  return holds_all_ != Hold::none ||
         std::ranges::any_of(reached_, [](std::uint8_t how) { return (how & locked) != 0; });
}

bool WindowEpochs::lock_all(bool check) {
  if (holds_any()) return false;
  for (std::size_t target = 0; check && target < ranks_; ++target) {
    enter_shared(board_.desk(target));
  }
  holds_all_ = check ? Hold::taken : Hold::unchecked;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  return true;
}

bool WindowEpochs::unlock_all() {
  const Hold how = std::exchange(holds_all_, Hold::none);
  if (how == Hold::none) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (std::size_t target = 0; how == Hold::taken && target < ranks_; ++target) {
    WindowDesk& desk = board_.desk(target);
    desk.lock.unlock_shared();
    desk.lock_waiters.wake(waits_);
  }
  return true;
}

bool WindowEpochs::post(std::vector<int> origins) {
  if (exposes_) return false;
  exposes_ = true;
  exposed_to_ = std::move(origins);
  for (const int origin : exposed_to_) {
    board_.posts(rank_, index(origin)).fetch_add(1, std::memory_order_release);  // see start()
  }
  waits_.wake_sleepers();
  return true;
}

bool WindowEpochs::start(std::vector<int> targets) {
  if (starts_) return false;
  for (const int target : targets) {
    const std::uint64_t seen = ++seen_posts_[index(target)];
    const auto& posts = board_.posts(index(target), rank_);
    // Acquire pairs with the release in post(): what the target wrote before is there.
    waits_.until([&] { return posts.load(std::memory_order_acquire) >= seen; });
  }
  for (const int target : targets) reached_[index(target)] |= started;
  started_to_ = std::move(targets);
  starts_ = true;
  return true;
}

bool WindowEpochs::complete() {
  if (!std::exchange(starts_, false)) return false;
  std::atomic_thread_fence(std::memory_order_seq_cst);
  for (const int target : started_to_) {
    reached_[index(target)] &= static_cast<std::uint8_t>(~started);
    // Release pairs with is_completed() of the target.
    board_.completions(rank_, index(target)).fetch_add(1, std::memory_order_release);
  }
  waits_.wake_sleepers();
  return true;
}

bool WindowEpochs::is_completed(int origin) const noexcept {
  return board_.completions(index(origin), rank_).load(std::memory_order_acquire) >
         seen_completions_[index(origin)];
}

void WindowEpochs::end_exposure() noexcept {
  for (const int origin : exposed_to_) ++seen_completions_[index(origin)];
  exposes_ = false;
}

bool WindowEpochs::wait() {
  if (!exposes_) return false;
  for (const int origin : exposed_to_) {
    waits_.until([&] { return is_completed(origin); });
  }
  end_exposure();
  return true;
}

bool WindowEpochs::test(bool& found) {
  found = exposes_;
  if (!found) return false;
  if (!std::ranges::all_of(exposed_to_, [&](int origin) { return is_completed(origin); })) {
    look();
    if (is_due(looked_ns_)) waits_.check_alive();  // a system call for each rank
    return false;
  }
  end_exposure();
  return true;
}

void WindowEpochs::wait_and_take(std::size_t target) {
  WindowDesk& desk = board_.desk(target);
  do {
    desk.take_waiters.until(waits_,
                            [&] { return desk.taken.load(std::memory_order_relaxed) == 0; });
    // Acquire pairs with the release in give().
  } while (desk.taken.exchange(1, std::memory_order_acquire) != 0);
}

void WindowEpochs::look() {
  mpi::progress();
  if (waits_.crowded()) sched_yield();
}

}  // namespace ropewalk::preload::onesided
