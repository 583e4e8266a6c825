#include "transport/lane.hpp"

#include <algorithm>
#include <string>
#include <utility>
#include <vector>

#include "os/futex.hpp"
#include "os/waiting.hpp"

namespace ropewalk::transport {
namespace {

// Holds work under way, in the order it came. The comm thread alone owns it.
class Active {
 public:
  bool empty() const noexcept { return first_ == nullptr; }
  // Returns the longest time for which any of it may stay awake.
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

  // Returns true if some work was completed.
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
  leaving_.store(true, std::memory_order_release);
  news_.advance();
  thread_.join();
}

void LaneThread::push(LaneWork& work) noexcept {
  work.next = inbox_.load(std::memory_order_relaxed);
  // Release pairs with the acquire of take().
  while (!inbox_.compare_exchange_weak(work.next, &work, std::memory_order_release,
                                       std::memory_order_relaxed)) {
  }
  news_.advance();
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

void LaneThread::run() noexcept {
  Active active;
  os::Waiting wait(os::wait_for_messages);
  for (;;) {
    const std::uint32_t news = news_.value();  // before the inbox: what comes later is not missed
    LaneWork* const fresh = take();
    active.append(fresh);
    if (wait.poll([&] { return active.advance(); }) || fresh != nullptr) {
      wait.restart(active.awake_ns());
    } else if (!active.empty()) {
      wait.pause();
    } else if (leaving_.load(std::memory_order_acquire)) {
      return;  // push() is never called after the destructor has begun: the inbox is empty
    } else {
      news_.wait_beyond(news);
    }
  }
}

}  // namespace ropewalk::transport
