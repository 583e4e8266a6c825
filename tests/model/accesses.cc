// What happens when a rank loads, stores, exchanges, waits or pauses.
#include <algorithm>
#include <cstring>

#include "model/explorer.hpp"

namespace ropewalk::model {
namespace {

bool acquires(std::memory_order order) {
  return order != std::memory_order_relaxed && order != std::memory_order_release;
}
bool releases(std::memory_order order) {
  return order != std::memory_order_relaxed && order != std::memory_order_acquire &&
         order != std::memory_order_consume;
}

// Reads frames of other functions, redzones and all.
__attribute__((noinline, no_sanitize("address"), no_sanitize("thread"))) std::uint64_t hash_words(
    const void* begin, const void* end) {
  std::uint64_t hash = 0;
  for (const auto* word = static_cast<const std::uint64_t*>(begin); word < end; ++word) {
    hash = (hash ^ *word) * 0x9e3779b97f4a7c15ULL;  // quick: compared with one other only
    hash ^= hash >> 32;
  }
  return hash;
}

}  // namespace

bool Explorer::weakens(const void* flag, Side side) {
  if (options_.weakened == nullptr || options_.weakened_side != side || peeking_) return false;
  if (std::strcmp(memory.name_of(flag), options_.weakened) != 0) return false;
  ++result_.weakened;
  return true;
}

void Explorer::note(Access access, const void* flag, std::uint64_t value) {
  if (access != Access::wait) remember(running, value);
  rounds_[running].found_news = true;
  steps_.push_back({running, access, flag, value, memory.name_of(flag), memory.owner_of(flag)});
}

// In a program that pauses, a load that returns the same as the last one leaves no trace. Between
// two checkpoints, a rank remembers which news it has found, and where in its round.
void Explorer::note_loaded(const void* flag, std::size_t index, std::uint64_t value) {
  if (!program_.pauses) return note(waiting_ ? Access::wait : Access::load, flag, value);
  Round& round = rounds_[running];
  ++round.accesses;
  if (std::ranges::find(round.looked_at, flag) == round.looked_at.end()) {
    round.looked_at.push_back(flag);
  }
  if (!memory.note_seen(running, flag, index)) return;
  remember(running, round.accesses);
  note(Access::load, flag, value);
}

void Explorer::remember(int rank, std::uint64_t value) {
  Key& history = history_[rank];
  history = {mix(history.low, value), mix(history.high, ~value)};
}

// The rank waits to be chosen.
void Explorer::stop(Access access, const void* flag) {
  pending_[running].access = access;
  pending_[running].flag = flag;
  fibers_.yield();
  pending_[running].access = Access::none;
}

std::uint64_t Explorer::load(const void* flag, bool acquire) {
  if (running < 0) return memory.peek(flag, memory.newest(flag));
  if (memory.has_one_writer(flag) && memory.owner_of(flag) == running) {
    return memory.peek(flag, memory.newest(flag));
  }
  if (!in_fiber_ && !peeking_) return memory.peek(flag, memory.newest(flag));
  const std::size_t ages = memory.newest(flag) - memory.oldest_readable(running, flag);
  if (peeking_) {
    oldest_age_ = std::max(oldest_age_, ages);
    return memory.peek(flag, memory.newest(flag) - std::min(age_, ages));
  }
  if (!waiting_) stop(Access::load, flag);
  check(memory.check_made(running, flag));
  const std::size_t now = memory.newest(flag) - memory.oldest_readable(running, flag);
  const std::size_t index = memory.newest(flag) - std::min(age_, now);
  if (weakens(flag, Side::acquire)) acquire = false;
  const std::uint64_t value = memory.load(running, flag, index, acquire);
  note_loaded(flag, index, value);
  waited_ = value;
  return value;
}

void Explorer::store(const void* flag, std::uint64_t value, bool release) {
  if (!in_fiber_) {
    memory.store(-1, flag, value, release);
    return;
  }
  const bool one_writer = memory.has_one_writer(flag);
  if (one_writer && memory.owner_of(flag) != running) fail("stores to a flag of another rank");
  // Without a choice of its own: a load that comes later may still return the older value unless
  // its rank must know of this one, so a store made early takes no schedule away. Where others
  // store, too, the order of the stores is a choice.
  if (options_.every_step || !one_writer) stop(Access::store, flag);
  if (weakens(flag, Side::release)) release = false;
  memory.store(running, flag, value, release);
  note(Access::store, flag, value);
}

bool Explorer::exchange(const void* flag, std::uint64_t& expected, std::uint64_t desired,
                        std::memory_order order) {
  if (!in_fiber_) {
    const std::uint64_t now = memory.peek(flag, memory.newest(flag));
    const bool equal = now == expected;
    if (equal) memory.store(-1, flag, desired, true);
    expected = now;
    return equal;
  }
  if (memory.has_one_writer(flag)) fail("exchanges a flag that is not known to have many writers");
  pending_[running].expected = expected;
  stop(Access::exchange, flag);
  check(memory.check_made(running, flag));
  const std::size_t index = memory.newest(flag) - age_;
  const bool acquire = acquires(order) && !weakens(flag, Side::acquire);
  const std::uint64_t found = memory.load(running, flag, index, acquire);
  note_loaded(flag, index, found);
  if (found != expected) {
    expected = found;
    return false;
  }
  const bool release = releases(order) && !weakens(flag, Side::release);
  memory.exchange(running, flag, desired, release);
  memory.note_seen(running, flag, index + 1);
  note(Access::exchange, flag, desired);
  return true;
}

// What the condition has read counts only where it was kept: in a variable of the frames above.
void Explorer::wait(bool (*ready)(const void*), const void* test, const void* frame) {
  pending_[running].ready = ready;
  pending_[running].test = test;
  const std::uint64_t before = hash_words(frame, fibers_.end_of_stack(running));
  stop(Access::wait, nullptr);
  waiting_ = true;
  const bool met = ready(test);
  waiting_ = false;
  if (!met) fail("goes on although its condition is false");
  const std::uint64_t after = hash_words(frame, fibers_.end_of_stack(running));
  remember(running, after == before ? 0 : waited_);
}

void Explorer::begin_round(Round& round) {
  round.accesses = 0;
  round.found_news = false;
  round.looked_at.clear();
}

// A round without news has changed nothing, so the next one would do the same until a flag that it
// looks at has another value. Behind the pause the rank sees a newer one of some such flag.
void Explorer::pause(std::uint64_t state) {
  Round& round = rounds_[running];
  checkpoint_at(state);
  if (!round.found_news) {
    stop(Access::pause, nullptr);
    memory.see_news(running, round.looked_at[age_]);
  }
  begin_round(round);
}

void Explorer::checkpoint_at(std::uint64_t state) {
  history_[running] = {mix(1, state), mix(2, ~state)};
}

// Does not come back to a rank: what it would do next is anybody's guess.
void Explorer::fail(const char* what) {
  if (result_.violation.empty()) report("rank " + std::to_string(running) + " " + what);
  if (in_fiber_) fibers_.drop_self();
}

// ---- called by the code under test

void create_flag(const void* flag) noexcept {
  current->check(current->memory.create(current->running, flag));
}
std::uint64_t load_flag(const void* flag, std::memory_order order) noexcept {
  return current->load(flag, acquires(order));
}
void store_flag(const void* flag, std::uint64_t value, std::memory_order order) noexcept {
  current->store(flag, value, releases(order));
}
bool exchange_flag(const void* flag, std::uint64_t& expected, std::uint64_t desired,
                   std::memory_order order) noexcept {
  return current->exchange(flag, expected, desired, order);
}
void pause(std::uint64_t memory) { current->pause(memory); }
void checkpoint_at(std::uint64_t memory) { current->checkpoint_at(memory); }
std::uint64_t hash_of_seen() { return current->memory.hash_of_seen(current->running); }
void wait(bool (*ready)(const void*), const void* test) {
  current->wait(ready, test, __builtin_frame_address(0));
}

}  // namespace ropewalk::model
