#include "transport/lane.hpp"

#include <sched.h>

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "os/futex.hpp"
#include "transport/backoff.hpp"

namespace ropewalk::transport {
namespace {

// Yields of an idle comm thread before it sleeps: some 20 us on a core of its own, a wake-up's
// worth.
constexpr int idle_yields = 64;
// Insurance only: a wake-up cannot be missed.
constexpr std::int64_t idle_sleep_ns = 1'000'000'000;

// Work under way, in the order it came. Owned by the comm thread alone.
class Active {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  // The longest that any of it may stay awake for.
  std::int64_t awake_ns() const noexcept {
    std::int64_t longest = 0;
    for (const LaneWork* work = first_; work != nullptr; work = work->next) {
      longest = std::max(longest, work->awake_ns);
    }
    return longest;
  }

  void append(LaneWork* work) noexcept {
    while (work != nullptr) {
      LaneWork* const following = std::exchange(work->next, nullptr);
      work->post();
      LaneWork** end = &first_;
      while (*end != nullptr) end = &(*end)->next;
      *end = work;
      work = following;
    }
  }

  // True if some work was completed.
  bool advance() noexcept {
    bool completed = false;
    for (LaneWork** link = &first_; *link != nullptr;) {
      LaneWork& work = **link;
      if (!work.advance()) {
        link = &work.next;
        continue;
      }
      *link = work.next;
      work.shared->countdown.count_down();  // the owner may destroy `work` from here on
      completed = true;
    }
    return completed;
  }

 private:
  LaneWork* first_ = nullptr;
};

}  // namespace

void Countdown::count_down() noexcept {
  // Acquire as well: the last lane's release then covers what the other lanes received.
  const std::uint32_t before = word_.fetch_sub(1, std::memory_order_acq_rel);
  // Waking touches no memory: the address is only a name, should the plan be gone already.
  if (before == (sleeper | 1U)) os::futex_wake(word_);
}

void Countdown::sleep(std::int64_t longest_ns) noexcept {
  const std::uint32_t before = word_.fetch_or(sleeper, std::memory_order_relaxed);
  if ((before & ~sleeper) != 0) os::futex_wait(word_, before | sleeper, longest_ns);
}

void SharedWork::set(std::uint32_t lanes) noexcept {
  countdown.set(lanes);
  sending.store(lanes, std::memory_order_relaxed);
  stopping.store(false, std::memory_order_relaxed);
  abandoned.store(false, std::memory_order_relaxed);
}

void LaneWork::post() noexcept {
  sending = true;
  batch.post();
}

bool LaneWork::advance() noexcept {
  if (shared->abandoned.load(std::memory_order_relaxed)) {
    batch.abandon();
    return true;
  }
  if (shared->stopping.load(std::memory_order_relaxed)) batch.stop();
  const bool sent = batch.advance_sends();
  if (batch.stopping()) shared->stopping.store(true, std::memory_order_relaxed);
  if (!sent) return false;
  if (std::exchange(sending, false)) shared->sending.fetch_sub(1, std::memory_order_relaxed);
  if (!batch.stopping()) return true;
  // The lanes tell each other no data by it: relaxed is enough.
  if (shared->sending.load(std::memory_order_relaxed) != 0) return false;
  batch.cancel_receives();
  return true;
}

LaneThread::LaneThread(int lane, std::span<const int> cores) {
  const std::string number = std::to_string(lane);
  thread_ = threads::Thread({.name = "rw-lane-" + number,
                             .cores = {cores.begin(), cores.end()},
                             .owner = "lanes: the comm thread of lane " + number,
                             .remedy = "ask for fewer lanes"},
                            [this] { run(); });
}

LaneThread::~LaneThread() {
  leaving_.store(true, std::memory_order_seq_cst);
  wake();
  thread_.join();
}

void LaneThread::push(LaneWork& work) noexcept {
  work.next = inbox_.load(std::memory_order_relaxed);
  // Release pairs with the acquire of take(). Sequentially consistent with idle(): either we see
  // it asleep, or it sees our work.
  while (!inbox_.compare_exchange_weak(work.next, &work, std::memory_order_seq_cst,
                                       std::memory_order_relaxed)) {
  }
  wake();
}

void LaneThread::wake() noexcept {
  if (asleep_.load(std::memory_order_seq_cst) == 0) return;
  asleep_.store(0, std::memory_order_seq_cst);
  os::futex_wake(asleep_);
}

// The inbox is a stack, newest first: turned round, so that plans are posted as they were started.
LaneWork* LaneThread::take() noexcept {
  if (inbox_.load(std::memory_order_relaxed) == nullptr) return nullptr;
  LaneWork* newest = inbox_.exchange(nullptr, std::memory_order_acquire);
  LaneWork* oldest = nullptr;
  while (newest != nullptr) {
    LaneWork* const following = std::exchange(newest->next, oldest);
    oldest = std::exchange(newest, following);
  }
  return oldest;
}

bool LaneThread::has_news() const noexcept {
  return inbox_.load(std::memory_order_seq_cst) != nullptr ||
         leaving_.load(std::memory_order_seq_cst);
}

void LaneThread::idle() noexcept {
  for (int i = 0; i < idle_yields; ++i) {
    if (has_news()) return;
    sched_yield();
  }
  asleep_.store(1, std::memory_order_seq_cst);
  if (!has_news()) os::futex_wait(asleep_, 1, idle_sleep_ns);
  asleep_.store(0, std::memory_order_seq_cst);
}

void LaneThread::run() noexcept {
  Active active;
  Backoff backoff;
  for (;;) {
    LaneWork* const fresh = take();
    active.append(fresh);
    if (active.advance() || fresh != nullptr) {
      backoff.reset();
    } else if (!active.empty()) {
      backoff.pause(active.awake_ns());
    } else if (leaving_.load(std::memory_order_acquire)) {
      return;  // push() is never called after the destructor has begun: the inbox is empty
    } else {
      idle();
    }
  }
}

}  // namespace ropewalk::transport
