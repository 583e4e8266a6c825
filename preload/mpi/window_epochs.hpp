// What ranks of a served window tell each other, in memory that all of them have mapped, and which
// epochs this rank has open. docs/explanation/drop-in-windows.md says what each call does.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "node/control.hpp"
#include "node/peers.hpp"
#include "node/sleepers.hpp"
#include "node/waits.hpp"
#include "ticket_lock.hpp"
#include "waiters.hpp"

namespace ropewalk::preload::onesided {

// One rank's place in the shared memory.
struct alignas(node::flag_stride) WindowDesk {
  TicketLock lock;  // of MPI_Win_lock
  Waiters lock_waiters;
  alignas(node::flag_stride) std::atomic<std::uint32_t> taken;  // see WindowEpochs::take()
  Waiters take_waiters;
};

// How the shared memory is divided. All zeros at first.
class WindowBoard {
 public:
  static std::size_t bytes(std::size_t ranks) noexcept;
  WindowBoard() = default;
  WindowBoard(std::byte* memory, std::size_t ranks) noexcept : memory_(memory), ranks_(ranks) {}

  node::Sleepers& sleepers() const noexcept { return *at<node::Sleepers>(0); }
  // Ranks that have come to a fence, counted over all fences.
  std::atomic<std::uint64_t>& fenced() const noexcept {
    return *at<std::atomic<std::uint64_t>>(fenced_at);
  }
  WindowDesk& desk(std::size_t rank) const noexcept { return at<WindowDesk>(desks_at)[rank]; }
  // How often `exposed` has posted its window to `origin`, and `origin` has completed its epochs.
  std::atomic<std::uint64_t>& posts(std::size_t exposed, std::size_t origin) const noexcept {
    return counts()[origin * ranks_ + exposed];
  }
  std::atomic<std::uint64_t>& completions(std::size_t origin, std::size_t exposed) const noexcept {
    return counts()[(ranks_ + exposed) * ranks_ + origin];
  }

 private:
  static constexpr std::size_t fenced_at = node::flag_stride;
  static constexpr std::size_t desks_at = fenced_at + node::flag_stride;

  template <class T>
  T* at(std::size_t offset) const noexcept {
    return reinterpret_cast<T*>(memory_ + offset);
  }
  std::atomic<std::uint64_t>* counts() const noexcept {
    return at<std::atomic<std::uint64_t>>(desks_at + ranks_ * sizeof(WindowDesk));
  }

  std::byte* memory_ = nullptr;
  std::size_t ranks_ = 0;
};

// The epochs of one rank. Functions that return a bool return false, and do nothing, where the call
// is out of place.
class WindowEpochs {
 public:
  using Peers = std::vector<std::shared_ptr<node::Peer>>;
  // `peers` are the processes of the ranks; `crowded`: they are more than their cores.
  WindowEpochs(WindowBoard, std::size_t rank, Peers peers, bool crowded);

  // Whether this rank may reach that one's memory now.
  bool open_to(std::size_t target) const noexcept {
    return fenced_ || holds_all_ != Hold::none || reached_[target] != 0;
  }

  void fence();
  bool lock(std::size_t target, bool exclusive, bool check);
  bool unlock(std::size_t target);
  bool lock_all(bool check);
  bool unlock_all();
  bool holds(std::size_t target) const noexcept {
    return holds_all_ != Hold::none || (reached_[target] & locked) != 0;
  }
  bool holds_any() const noexcept;
  // Whether any epoch but that of fences is open.
  bool is_open() const noexcept { return holds_any() || starts_ || exposes_; }

  bool post(std::vector<int> origins);
  bool start(std::vector<int> targets);
  bool complete();
  bool wait();
  // Whether the exposure is over; `found` false where there is none.
  bool test(bool& found);

  // Accumulates to the target are this rank's alone from take() to give().
  void take(std::size_t target) {
    // Acquire pairs with the release in give().
    if (board_.desk(target).taken.exchange(1, std::memory_order_acquire) != 0) [[unlikely]] {
      wait_and_take(target);
    }
  }
  void give(std::size_t target) noexcept {
    WindowDesk& desk = board_.desk(target);
    desk.taken.store(0, std::memory_order_release);
    note_stores();
    desk.take_waiters.wake(waits_);
  }

  // This rank has stored to the memory of others.
  void note_stores() noexcept { stored_.store(true, std::memory_order_relaxed); }
  // What it has stored is there for others, and what others have stored is read anew. A processor
  // may load before its own stores are seen, which the fence ends; where nothing was stored, it is
  // not needed. With several threads the mark may be another's.
  void flush() {
    if (stored_.load(std::memory_order_relaxed)) {
      if (!threads_) stored_.store(false, std::memory_order_relaxed);
      std::atomic_thread_fence(std::memory_order_seq_cst);
    } else {
      std::atomic_thread_fence(std::memory_order_acq_rel);
    }
    breathe();
  }

  // Lets MPI look now and then at what is under way, and other ranks have the core, for programs
  // that wait by one call after the other.
  void breathe() {
    // Another thread's call may be lost, which does not matter.
    const unsigned calls = calls_.load(std::memory_order_relaxed) + 1;
    calls_.store(calls, std::memory_order_relaxed);
    if (calls % calls_per_look == 0) [[unlikely]] {
      look();
    }
  }

 private:
  enum class Hold : std::uint8_t { none, taken, unchecked };
  // Bits of reached_.
  static constexpr std::uint8_t exclusively = 1, shared = 2, unchecked = 4, started = 8;
  static constexpr std::uint8_t locked = exclusively | shared | unchecked;

  // Calls between two looks at MPI, each of which costs about as much as two such calls.
  static constexpr unsigned calls_per_look = 64;

  bool is_completed(int origin) const noexcept;
  void end_exposure() noexcept;
  void wait_and_take(std::size_t target);
  void enter_shared(WindowDesk&);
  void look();

  WindowBoard board_;
  Peers peers_;
  node::Waits waits_;
  std::size_t rank_;
  std::size_t ranks_;
  std::uint64_t fences_ = 0;
  bool fenced_ = false;
  Hold holds_all_ = Hold::none;
  bool exposes_ = false;
  bool starts_ = false;
  std::vector<std::uint8_t> reached_;  // by rank
  std::vector<int> exposed_to_;
  std::vector<int> started_to_;
  std::vector<std::uint64_t> seen_posts_;  // by rank; those that a start has answered
  std::vector<std::uint64_t> seen_completions_;
  std::int64_t looked_ns_ = 0;  // when test() looked at the life of others
  std::atomic<unsigned> calls_{0};
  std::atomic<bool> stored_{false};
  bool threads_;  // several threads may use the window
};

}  // namespace ropewalk::preload::onesided
