// The threads of a rank that reduce a large vector together (the last figure of Boyle et al. 2017,
// section IV: their number should follow the length of the vector).
//
// The caller is one of them. The arithmetic is cut into blocks, and a thread that has nothing else
// to do takes the next block. Where MPI lets several threads call it, several *lanes* communicate,
// each on a communicator of its own; elsewhere only lane 0 does, which belongs to the caller. A
// thread that joins a call takes the next lane that has no thread. Nobody waits for a thread that
// has not begun: the caller does what no other thread has taken. The order of summation does not
// depend on the threads.
//
// Between calls the threads sleep. Within a call a sleeping thread is woken only when the vector is
// long and more is left to do than the others finish in the time it takes to wake up: for a short
// vector, or a slow line, the caller stays alone.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <vector>

#include "collectives/engine.hpp"
#include "mpi/mpi.hpp"
#include "os/epoch.hpp"
#include "threads/thread.hpp"
#include "tuning/profile.hpp"

namespace ropewalk::collectives::nodes {

// Computes a op b, element by element.
struct Combination {
  const Operation* operation;
  std::byte* result;  // may be one of the two
  const std::byte* a;
  const std::byte* b;
  std::size_t count;  // elements
};

class ReductionThreads {
 public:
  static constexpr int most_threads = 64;
  // So many combinations may one lane, or a caller that is the only one, have under way.
  static constexpr int slots_each = 4;

  // `threads` counts the caller. Throws Error(system) where they cannot be started.
  ReductionThreads(int threads, bool crowded, const tuning::Values&);
  ~ReductionThreads();
  ReductionThreads(const ReductionThreads&) = delete;
  ReductionThreads& operator=(const ReductionThreads&) = delete;

  int count() const noexcept { return 1 + static_cast<int>(threads_.size()); }

  // ---- a call, by its caller

  // work(object, lane) runs once for each lane from 1 to communicating - 1, on any thread that
  // comes, until end(). It returns when it is done, or when stopped() says so.
  void begin(int communicating, void (*work)(void*, int), void* object) noexcept;
  // Returns a lane that nobody has taken, for the caller to do itself; 0 for none.
  int take_lane() noexcept;
  bool stopped() const noexcept { return stopped_.load(std::memory_order_relaxed); }
  // Returns when no thread is in `work` or in a combination any more. What is not done stays so.
  void end() noexcept;

  // ---- arithmetic, within a call; a slot is used by one thread

  void start(int slot, const Combination&) noexcept;
  // Acquire: pairs with the release of who has done the last block.
  bool finished(int slot) const noexcept {
    const Slot& own = slots_[static_cast<std::size_t>(slot)];
    return own.done.load(std::memory_order_acquire) == own.blocks;
  }
  // Does one block of a combination; false where there is none to take.
  bool help(int first_slot) noexcept;

 private:
  struct Slot {
    // The word holds the serial number of the combination, its blocks, and how many of these are
    // taken: 32, 16 and 16 bits. A block is taken by raising the last. The number keeps a thread
    // that has looked at an earlier combination from taking a block of this one unseen (no ABA);
    // what lies in `what` is read behind the exchange, when it stays until that block is done.
    alignas(128) std::atomic<std::uint64_t> word{0};
    alignas(128) std::atomic<std::uint32_t> done{0};  // blocks
    std::uint32_t blocks = 0;                         // the poster's
    Combination what{};
  };

  void live() noexcept;
  bool take_part() noexcept;
  void start_thread(int number, int threads);
  void stop_threads() noexcept;

  std::size_t block_bytes_;
  int blocks_worth_waking_;
  int blocks_alone_;
  std::unique_ptr<Slot[]> slots_;
  os::Epoch news_;
  std::atomic<bool> ending_{false};
  // These belong to the call under way. They are written while open_ is false and nobody is inside.
  void (*work_)(void*, int) = nullptr;
  void* object_ = nullptr;
  int communicating_ = 1;
  std::atomic<bool> open_{false};
  std::atomic<bool> stopped_{true};
  alignas(128) std::atomic<int> inside_{0};     // threads that look for work in a call
  alignas(128) std::atomic<int> next_lane_{1};  // the first that nobody has taken
  alignas(128) std::atomic<int> waiting_{0};    // blocks that nobody has taken, about
  std::atomic<int> posted_{0};                  // blocks of this call so far
  std::vector<threads::Thread> threads_;
};

// ---- how many

struct ThreadShare {
  int threads = 1;        // of this rank
  int communicating = 1;  // lanes, the same on all ranks
  bool crowded = false;   // threads outnumber cores
};
// Collective (thread_share.cc). `wanted` is the number of threads on this rank; 0 means one for
// each core that it has for itself. More than one lane communicates where `may_communicate`,
// ROPEWALK_LANES says so, and MPI allows it on all ranks.
ThreadShare share_threads(mpi::Comm, int wanted, bool may_communicate);
// Returns what the options and ROPEWALK_REDUCTION_THREADS ask for; 0 means automatic. Throws
// Error(argument) for no number of threads.
int checked_threads(int threads);
int wished_threads();

}  // namespace ropewalk::collectives::nodes
