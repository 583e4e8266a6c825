#include "model/model.hpp"

#include <array>
#include <cstring>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "model/fibers.hpp"
#include "model/memory.hpp"

namespace ropewalk::model {
namespace {

// A search beyond this is a test made too large, or a loop that never waits.
constexpr std::size_t largest_runs = 3000000;
constexpr std::size_t largest_depth = 20000;

enum class Access { none, load, store, wait };

// What a rank will do when it is chosen.
struct Pending {
  Access access = Access::none;
  const void* flag = nullptr;
  bool (*ready)(const void*) = nullptr;
  const void* test = nullptr;
};

// The rank that goes on, and how many values older than the newest its load returns.
struct Choice {
  std::uint8_t rank;
  std::uint8_t age;
};

struct Step {
  int rank;
  Access access;
  const void* flag;
  std::uint64_t value;
  const char* name;
  int owner;
};

struct Key {
  std::uint64_t low = 0;
  std::uint64_t high = 0;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  std::size_t operator()(const Key& key) const noexcept { return key.low; }
};

// A node on the way from the first choice to the current one.
struct Frame {
  Key key;
  std::vector<Choice> choices;
  std::size_t next = 0;
  double schedules = 0;  // below the choices already tried
};

std::uint64_t mix(std::uint64_t hash, std::uint64_t value) {  // splitmix64's finaliser
  hash += 0x9e3779b97f4a7c15ULL + value;
  hash = (hash ^ hash >> 30) * 0xbf58476d1ce4e5b9ULL;
  hash = (hash ^ hash >> 27) * 0x94d049bb133111ebULL;
  return hash ^ hash >> 31;
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

class Explorer {
 public:
  Explorer(int ranks, const Program& program, const Options& options)
      : ranks_(ranks), program_(program), options_(options), fibers_(ranks) {}
  Result explore();

  // ---- of the rank that runs
  Memory memory;
  int running = -1;
  int ranks() const { return ranks_; }
  std::uint64_t load(const void* flag, bool acquire);
  void store(const void* flag, std::uint64_t value, bool release);
  void wait(bool (*ready)(const void*), const void* test, const void* frame);
  void check(const char* problem) {
    if (problem != nullptr) fail(problem);
  }
  void fail(const char* what);
  void checkpoint(std::uint64_t state);

 private:
  double run_once();
  void begin();
  void finish();
  void resume(Choice choice);
  std::vector<Choice> choices();
  void add_ages(int rank, std::vector<Choice>& found);
  bool all_ended() const;
  bool back_up(double schedules);
  Key key();
  void stop(Access access, const void* flag);
  void remember(int rank, std::uint64_t value);
  bool weakens(const void* flag, Side side);
  void note(int rank, Access access, const void* flag, std::uint64_t value);
  void report(std::string violation);
  std::string describe_waiting() const;
  std::string describe_steps() const;

  int ranks_;
  const Program& program_;
  Options options_;
  Fibers fibers_;
  std::array<Pending, max_ranks> pending_{};
  std::array<Key, max_ranks> history_{};  // where each rank is, and what it has read since
  std::array<std::uint64_t, max_ranks> checkpoints_{};
  std::vector<std::uint64_t> state_;
  bool in_fiber_ = false;
  bool peeking_ = false;        // a condition is only tried
  bool waiting_ = false;        // a condition is met: its loads need no choice of their own
  std::uint64_t waited_ = 0;    // what the condition met has read
  std::size_t age_ = 0;         // of what the next load returns
  std::size_t oldest_age_ = 0;  // that the condition tried could have read
  std::vector<Step> steps_;
  std::vector<Frame> frames_;
  std::unordered_map<Key, double, KeyHash> merged_;  // schedules from states that are done
  std::unordered_set<Key, KeyHash> ends_;
  Result result_;
};

Explorer* current = nullptr;

// ---- accesses

bool acquires(std::memory_order order) {
  return order != std::memory_order_relaxed && order != std::memory_order_release;
}
bool releases(std::memory_order order) {
  return order != std::memory_order_relaxed && order != std::memory_order_acquire &&
         order != std::memory_order_consume;
}

bool Explorer::weakens(const void* flag, Side side) {
  if (options_.weakened == nullptr || options_.weakened_side != side || peeking_) return false;
  if (std::strcmp(memory.name_of(flag), options_.weakened) != 0) return false;
  ++result_.weakened;
  return true;
}

void Explorer::note(int rank, Access access, const void* flag, std::uint64_t value) {
  if (access != Access::wait) remember(rank, value);
  steps_.push_back({rank, access, flag, value, memory.name_of(flag), memory.owner_of(flag)});
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
  if (memory.owner_of(flag) == running) return memory.peek(flag, memory.newest(flag));
  if (!in_fiber_ && !peeking_) return memory.peek(flag, memory.newest(flag));
  const std::size_t ages = memory.newest(flag) - memory.oldest_readable(running, flag);
  if (peeking_) {
    oldest_age_ = std::max(oldest_age_, ages);
    return memory.peek(flag, memory.newest(flag) - std::min(age_, ages));
  }
  if (!waiting_) stop(Access::load, flag);
  const std::size_t now = memory.newest(flag) - memory.oldest_readable(running, flag);
  const std::size_t index = memory.newest(flag) - std::min(age_, now);
  if (weakens(flag, Side::acquire)) acquire = false;
  const std::uint64_t value = memory.load(running, flag, index, acquire);
  note(running, waiting_ ? Access::wait : Access::load, flag, value);
  waited_ = value;
  return value;
}

void Explorer::store(const void* flag, std::uint64_t value, bool release) {
  if (!in_fiber_) {
    memory.store(-1, flag, value, release);
    return;
  }
  if (memory.owner_of(flag) != running) fail("stores to a flag of another rank");
  // Without a choice of its own: a load that comes later may still return the older value unless
  // its rank must know of this one, so a store made early takes no schedule away.
  if (options_.every_step) stop(Access::store, flag);
  if (weakens(flag, Side::release)) release = false;
  memory.store(running, flag, value, release);
  note(running, Access::store, flag, value);
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

// Does not come back to a rank: what it would do next is anybody's guess.
void Explorer::fail(const char* what) {
  if (result_.violation.empty()) report("rank " + std::to_string(running) + " " + what);
  if (in_fiber_) fibers_.drop_self();
}

// ---- choices

// Every age of the values read with which the condition, or the load, can go on.
void Explorer::add_ages(int rank, std::vector<Choice>& found) {
  const Pending& pending = pending_[rank];
  running = rank;
  if (pending.access == Access::load) {
    const std::size_t newest = memory.newest(pending.flag);
    const std::size_t ages = newest - memory.oldest_readable(rank, pending.flag);
    for (std::size_t age = 0; age <= ages; ++age) {
      found.push_back({static_cast<std::uint8_t>(rank), static_cast<std::uint8_t>(age)});
    }
    return;
  }
  peeking_ = true;
  oldest_age_ = 0;
  for (age_ = 0; age_ <= oldest_age_; ++age_) {
    if (!pending.ready(pending.test)) continue;
    found.push_back({static_cast<std::uint8_t>(rank), static_cast<std::uint8_t>(age_)});
  }
  peeking_ = false;
}

std::vector<Choice> Explorer::choices() {
  std::vector<Choice> found;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (fibers_.ended(rank)) continue;
    if (pending_[rank].access == Access::store) {
      found.push_back({static_cast<std::uint8_t>(rank), 0});
    } else {
      add_ages(rank, found);
    }
  }
  running = -1;
  return found;
}

Key Explorer::key() {
  state_.clear();
  for (int rank = 0; rank < ranks_; ++rank) {
    state_.push_back(history_[rank].low);
    state_.push_back(history_[rank].high);
  }
  memory.describe_state(ranks_, state_);
  Key key;
  for (const std::uint64_t word : state_) {
    key.low = mix(key.low, word);
    key.high = mix(key.high, ~word);
  }
  return key;
}

void Explorer::checkpoint(std::uint64_t state) {
  const std::uint64_t place = ++checkpoints_[running];
  history_[running] = {mix(mix(1, place), state), mix(mix(2, place), ~state)};
}

// ---- the search

void Explorer::resume(Choice choice) {
  running = choice.rank;
  age_ = choice.age;
  in_fiber_ = true;
  fibers_.resume(choice.rank);
  in_fiber_ = false;
  running = -1;
}

void Explorer::begin() {
  memory.reset();
  history_ = {};
  checkpoints_ = {};
  steps_.clear();
  program_.set_up();
  running = -1;
  for (int rank = 0; rank < ranks_; ++rank) {
    fibers_.start(rank, [this, rank] { program_.run(rank); });
  }
  for (int rank = 0; rank < ranks_ && result_.violation.empty(); ++rank) {
    resume({static_cast<std::uint8_t>(rank), 0});
  }
}

void Explorer::finish() {
  for (int rank = 0; rank < ranks_; ++rank) fibers_.drop(rank);
  waiting_ = false;
  running = -1;
  program_.tear_down();
}

bool Explorer::all_ended() const {
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!fibers_.ended(rank)) return false;
  }
  return true;
}

// Follows the frames, then goes on to the end or to a state that is done; returns how many
// schedules begin where it stopped.
double Explorer::run_once() {
  ++result_.runs;
  begin();
  for (std::size_t depth = 0; result_.violation.empty(); ++depth) {
    if (depth < frames_.size()) {
      resume(frames_[depth].choices[frames_[depth].next]);
      continue;
    }
    if (all_ended()) {
      ends_.insert(key());
      return 1;
    }
    Frame frame{key(), choices()};
    if (frame.choices.empty()) {
      report("deadlock: " + describe_waiting());
    } else if (depth > largest_depth) {
      report("a schedule does not end");
    } else {
      if (!options_.every_step) {
        if (const auto done = merged_.find(frame.key); done != merged_.end()) return done->second;
      }
      ++result_.states;
      frames_.push_back(std::move(frame));
      resume(frames_.back().choices.front());
    }
  }
  return 0;
}

// To the next choice that was not tried; false when there is none.
bool Explorer::back_up(double schedules) {
  while (!frames_.empty()) {
    Frame& top = frames_.back();
    top.schedules += schedules;
    if (++top.next < top.choices.size()) return true;
    schedules = top.schedules;
    if (!options_.every_step) merged_.emplace(top.key, schedules);
    frames_.pop_back();
  }
  result_.schedules = schedules;
  return false;
}

Result Explorer::explore() {
  current = this;
  for (;;) {
    const double schedules = run_once();
    finish();
    if (!result_.violation.empty() || !back_up(schedules)) break;
    if (result_.runs >= largest_runs) {
      result_.violation = "the search was given up: too many schedules";
      break;
    }
  }
  current = nullptr;
  result_.ends = ends_.size();
  for (const Key& key : ends_) result_.all_ends += key.low ^ key.high;
  return result_;
}

// ---- reports

void Explorer::report(std::string violation) {
  result_.violation = std::move(violation);
  result_.schedule = describe_steps();
}

std::string Explorer::describe_waiting() const {
  std::string text;
  for (int rank = 0; rank < ranks_; ++rank) {
    text += (rank == 0 ? "rank " : ", rank ") + std::to_string(rank) +
            (fibers_.ended(rank) ? " has ended" : " waits");
  }
  return text;
}

std::string Explorer::describe_steps() const {
  static constexpr const char* verbs[] = {"?", "loads", "stores", "has waited for"};
  std::string text;
  for (const Step& step : steps_) {
    text += "  rank " + std::to_string(step.rank) + " " + verbs[static_cast<int>(step.access)] +
            " " + step.name + " of rank " + std::to_string(step.owner) + ": " +
            std::to_string(step.value) + "\n";
  }
  return text;
}

int being_set_up = 0;

}  // namespace

void create_flag(const void* flag) noexcept { current->memory.create(flag); }
std::uint64_t load_flag(const void* flag, std::memory_order order) noexcept {
  return current->load(flag, acquires(order));
}
void store_flag(const void* flag, std::uint64_t value, std::memory_order order) noexcept {
  current->store(flag, value, releases(order));
}
void wait(bool (*ready)(const void*), const void* test) {
  current->wait(ready, test, __builtin_frame_address(0));
}

void read(const void* address, std::size_t bytes) noexcept {
  if (current != nullptr) current->check(current->memory.read(current->running, address, bytes));
}
void write(const void* address, std::size_t bytes) noexcept {
  if (current != nullptr) current->check(current->memory.write(current->running, address, bytes));
}

std::byte* arena(int rank) noexcept { return current->memory.arena(rank); }
std::byte* allocate(std::size_t bytes, std::size_t alignment) {
  return current->memory.allocate(rank(), bytes, alignment);
}
void deallocate(const void* address) noexcept {
  current->check(current->memory.deallocate(current->running, address));
}

int rank() noexcept { return current->running >= 0 ? current->running : being_set_up; }
int ranks() noexcept { return current->ranks(); }
void set_rank(int rank) noexcept { being_set_up = rank; }
void name_flag(const void* flag, const char* name) { current->memory.name(flag, name); }
void fail(const char* what) { current->fail(what); }
void checkpoint(std::uint64_t memory) { current->checkpoint(memory); }

// A word that looks like an address of a Linux process is taken for a pointer.
std::uint64_t numbers_changed(const void* before, const void* now, std::size_t bytes) noexcept {
  std::uint64_t result = 0;
  for (std::size_t at = 0; at + sizeof(std::uint64_t) <= bytes; at += sizeof(std::uint64_t)) {
    std::uint64_t words[2] = {};
    std::memcpy(words, static_cast<const std::byte*>(before) + at, sizeof *words);
    std::memcpy(words + 1, static_cast<const std::byte*>(now) + at, sizeof *words);
    const std::uint64_t upper = words[1] >> 32;
    const bool pointer = upper >= 0x1000 && upper <= 0x7fff;
    if (words[0] != words[1] && !pointer) result = mix(mix(result, at), words[1]);
  }
  return result;
}

Result explore(int ranks, const Program& program, const Options& options) {
  Explorer explorer(ranks, program, options);
  return explorer.explore();
}

}  // namespace ropewalk::model
