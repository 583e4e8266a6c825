#include "collectives/nodes/reduction_threads.hpp"

#include <sched.h>

#include <algorithm>
#include <string>

#include "os/cores.hpp"
#include "os/relax.hpp"

namespace ropewalk::collectives::nodes {
namespace {

constexpr std::uint64_t most_blocks = 0xffff;

constexpr std::uint32_t taken_of(std::uint64_t word) noexcept { return word & 0xffffU; }
constexpr std::uint32_t blocks_of(std::uint64_t word) noexcept { return word >> 16 & 0xffffU; }

std::size_t elements_of_block(const Combination& what, std::size_t block_bytes) {
  const std::size_t wanted = std::max<std::size_t>(1, block_bytes / what.operation->element_bytes);
  return std::max(wanted, what.count / most_blocks + 1);
}

void combine(const Combination& what, std::size_t begin, std::size_t count) {
  const std::size_t offset = begin * what.operation->element_bytes;
  void* result = what.result + offset;
  const void* inputs[] = {what.a + offset, what.b + offset};
  what.operation->combine(std::span(&result, 1), inputs, count, kernels::Stores::temporal);
}

}  // namespace

ReductionThreads::ReductionThreads(int threads, bool crowded, const tuning::Values& values)
    : block_bytes_(values[tuning::Id::nodes_thread_block]),
      blocks_worth_waking_(static_cast<int>(values[tuning::Id::nodes_thread_waking_blocks])),
      blocks_alone_(static_cast<int>(values[tuning::Id::nodes_thread_alone_blocks])),
      slots_(new Slot[static_cast<std::size_t>(std::max(threads, 1) * slots_each)]),
      news_(crowded) {
  try {
    threads_.reserve(static_cast<std::size_t>(std::max(threads, 1) - 1));
    for (int number = 2; number <= threads; ++number) start_thread(number, threads);
  } catch (...) {
    stop_threads();
    throw;
  }
}

ReductionThreads::~ReductionThreads() { stop_threads(); }

void ReductionThreads::start_thread(int number, int threads) {
  // Every core of the process: the caller may be bound to the one it computes on.
  threads_.emplace_back(
      threads::ThreadOptions{
          .name = "rw-lane",
          .cores = os::process_cores(),
          .owner = "reduction: thread " + std::to_string(number) + " of " + std::to_string(threads),
          .remedy = "set ROPEWALK_REDUCTION_THREADS=1"},
      [this] { live(); });
}

void ReductionThreads::stop_threads() noexcept {
  ending_.store(true, std::memory_order_release);
  news_.advance();
  for (threads::Thread& thread : threads_) thread.join();
}

void ReductionThreads::live() noexcept {
  for (;;) {
    const std::uint32_t seen = news_.value();
    if (ending_.load(std::memory_order_acquire)) return;
    if (!take_part()) news_.wait_beyond(seen);
  }
}

// Sequentially consistent with end(): either it sees us inside, or we see that the call is over.
bool ReductionThreads::take_part() noexcept {
  bool found = false;
  inside_.fetch_add(1, std::memory_order_seq_cst);
  if (open_.load(std::memory_order_seq_cst)) {
    if (const int lane = take_lane(); lane != 0) {
      found = true;
      work_(object_, lane);
    }
    while (!stopped() && help(0)) found = true;
  }
  inside_.fetch_sub(1, std::memory_order_release);
  return found;
}

void ReductionThreads::begin(int communicating, void (*work)(void*, int), void* object) noexcept {
  work_ = work;
  object_ = object;
  communicating_ = communicating;
  next_lane_.store(1, std::memory_order_relaxed);
  posted_.store(0, std::memory_order_relaxed);
  stopped_.store(false, std::memory_order_relaxed);
  open_.store(true, std::memory_order_seq_cst);
  if (communicating > 1) news_.advance();
}

int ReductionThreads::take_lane() noexcept {
  if (next_lane_.load(std::memory_order_relaxed) >= communicating_) return 0;
  const int lane = next_lane_.fetch_add(1, std::memory_order_acq_rel);
  return lane < communicating_ ? lane : 0;
}

void ReductionThreads::end() noexcept {
  stopped_.store(true, std::memory_order_relaxed);
  open_.store(false, std::memory_order_seq_cst);
  // Acquire pairs with the release in take_part(): what a thread did is done.
  while (inside_.load(std::memory_order_seq_cst) != 0) sched_yield();
  // What a call that failed has left.
  for (int slot = 0; slot < count() * slots_each; ++slot) {
    std::atomic<std::uint64_t>& word = slots_[static_cast<std::size_t>(slot)].word;
    const std::uint64_t seen = word.load(std::memory_order_relaxed);
    if (taken_of(seen) != blocks_of(seen)) word.store(seen >> 32 << 32, std::memory_order_relaxed);
  }
  waiting_.store(0, std::memory_order_relaxed);
}

void ReductionThreads::start(int slot, const Combination& what) noexcept {
  Slot& own = slots_[static_cast<std::size_t>(slot)];
  const std::size_t each = elements_of_block(what, block_bytes_);
  const std::size_t blocks = (what.count + each - 1) / each;
  own.blocks = static_cast<std::uint32_t>(blocks);
  own.done.store(0, std::memory_order_relaxed);
  if (blocks <= 1) {
    combine(what, 0, what.count);
    own.done.store(own.blocks, std::memory_order_relaxed);
    return;
  }
  own.what = what;
  const std::uint64_t serial = (own.word.load(std::memory_order_relaxed) >> 32) + 1;
  own.word.store(serial << 32 | blocks << 16, std::memory_order_release);
  const int added = static_cast<int>(blocks);
  const int left = added + waiting_.fetch_add(added, std::memory_order_relaxed);
  const int posted = posted_.fetch_add(added, std::memory_order_relaxed);
  if (left >= blocks_worth_waking_ && posted >= blocks_alone_) {
    news_.advance();
  } else {
    news_.advance_quietly();
  }
}

bool ReductionThreads::help(int first_slot) noexcept {
  const int slots = communicating_ * slots_each;
  for (int k = 0; k < slots; ++k) {
    Slot& slot = slots_[static_cast<std::size_t>((first_slot + k) % slots)];
    std::uint64_t seen = slot.word.load(std::memory_order_acquire);
    while (taken_of(seen) < blocks_of(seen)) {
      // Acquire: of what start() has released.
      if (!slot.word.compare_exchange_weak(seen, seen + 1, std::memory_order_acq_rel,
                                           std::memory_order_acquire)) {
        continue;
      }
      waiting_.fetch_sub(1, std::memory_order_relaxed);
      const std::size_t each = elements_of_block(slot.what, block_bytes_);
      const std::size_t begin = taken_of(seen) * each;
      combine(slot.what, begin, std::min(each, slot.what.count - begin));
      slot.done.fetch_add(1, std::memory_order_release);
      return true;
    }
  }
  return false;
}

}  // namespace ropewalk::collectives::nodes
