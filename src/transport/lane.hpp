// A lane: one comm thread with the duplicated communicator it alone drives (Boyle et al. 2017,
// section III.D).
#pragma once

#include <atomic>
#include <cstdint>
#include <span>
#include <utility>

#include "os/epoch.hpp"
#include "threads/thread.hpp"
#include "transport/batch.hpp"

namespace ropewalk::transport {

// Counts the lanes at work on one plan; the top bit says that the plan's owner sleeps on it. It is
// one word, so that a lane touches nothing of the plan after it has counted itself down.
class Countdown {
 public:
  void set(std::uint32_t lanes) noexcept { word_.store(lanes, std::memory_order_relaxed); }
  // Acquire pairs with the release of count_down(): what the lanes received is visible.
  bool done() const noexcept { return (word_.load(std::memory_order_acquire) & ~sleeper) == 0; }
  void count_down() noexcept;
  // Returns when all lanes are done, or earlier.
  void sleep(std::int64_t longest_ns = 1'000'000) noexcept;

 private:
  static constexpr std::uint32_t sleeper = 0x80000000U;
  std::atomic<std::uint32_t> word_{0};
};

// What the lanes at work on one plan share. They end early together: a lane that cancelled its
// receives while another still sends could wait for a peer that does the same the other way round.
struct SharedWork {
  Countdown countdown;
  std::atomic<std::uint32_t> sending{0};  // lanes that are neither complete nor done sending
  std::atomic<bool> stopping{false};      // the plan is cancelled, or a lane has failed
  std::atomic<bool> abandoned{false};     // a rank has died: nothing is waited for

  void set(std::uint32_t lanes) noexcept;
};

// The messages of one plan on one lane, linked into the lane's lists while they are under way.
struct LaneWork {
  Batch batch;
  SharedWork* shared = nullptr;
  bool sending = false;
  std::int64_t awake_ns = os::awake_ns_for(0);  // of a wait for it, before it sleeps
  LaneWork* next = nullptr;

  explicit LaneWork(const Batch& messages) noexcept : batch(messages) {}
  void post() noexcept;
  bool advance() noexcept;  // true when nothing is pending any more
  LaneWork(LaneWork&& other) noexcept
      : batch(std::move(other.batch)), awake_ns(other.awake_ns) {}  // before any use only
};

class LaneThread {
 public:
  // Starts the thread, on `cores` if there are any. Throws Error(system) where there can be none.
  LaneThread(int lane, std::span<const int> cores);
  ~LaneThread();  // finishes the work it has, then joins
  LaneThread(const LaneThread&) = delete;
  LaneThread& operator=(const LaneThread&) = delete;

  // Hands over work and wakes the thread if it sleeps. Any thread may call it; it takes no lock and
  // allocates nothing.
  void push(LaneWork& work) noexcept;

 private:
  void run() noexcept;
  LaneWork* take() noexcept;

  // Producers and the comm thread each write their own cache lines.
  alignas(128) std::atomic<LaneWork*> inbox_{nullptr};
  std::atomic<bool> leaving_{false};
  os::Epoch news_{os::wait_for_work};  // advanced when there is work, or the thread is to end
  threads::Thread thread_;
};

}  // namespace ropewalk::transport
