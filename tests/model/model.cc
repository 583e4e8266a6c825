#include "model/model.hpp"

#include <cstring>

#include "model/explorer.hpp"

namespace ropewalk::model {
namespace {

// A search beyond this is a test made too large, or a loop that never waits.
constexpr std::size_t largest_runs = 3000000;
constexpr std::size_t largest_depth = 20000;

int being_set_up = 0;

}  // namespace

Explorer* current = nullptr;

// ---- choices

// Adds every age of the values with which a load or an exchange can go on. An exchange succeeds on
// the newest value only; one that fails is a load.
void Explorer::add_ages(int rank, std::vector<Choice>& found) {
  const Pending& pending = pending_[rank];
  const std::size_t newest = memory.newest(pending.flag);
  const std::size_t ages = newest - memory.oldest_readable(rank, pending.flag);
  for (std::size_t age = 0; age <= ages; ++age) {
    const bool would_succeed = pending.access == Access::exchange &&
                               memory.peek(pending.flag, newest - age) == pending.expected;
    if (age != 0 && would_succeed) continue;
    found.push_back({static_cast<std::uint8_t>(rank), static_cast<std::uint8_t>(age)});
  }
}

// Adds each flag that the rank has looked at and that has changed since.
void Explorer::add_news(int rank, std::vector<Choice>& found) {
  const std::vector<const void*>& flags = rounds_[rank].looked_at;
  for (std::size_t index = 0; index < flags.size(); ++index) {
    if (!memory.has_news(rank, flags[index])) continue;
    found.push_back({static_cast<std::uint8_t>(rank), static_cast<std::uint8_t>(index)});
  }
}

// Every age of the values read with which the condition can go on.
void Explorer::add_ages_of_wait(int rank, std::vector<Choice>& found) {
  const Pending& pending = pending_[rank];
  running = rank;
  peeking_ = true;
  oldest_age_ = 0;
  for (age_ = 0; age_ <= oldest_age_; ++age_) {
    if (!pending.ready(pending.test)) continue;
    found.push_back({static_cast<std::uint8_t>(rank), static_cast<std::uint8_t>(age_)});
  }
  peeking_ = false;
}

void Explorer::add_choices(int rank, std::vector<Choice>& found) {
  switch (pending_[rank].access) {
    case Access::store:
      return found.push_back({static_cast<std::uint8_t>(rank), 0});
    case Access::wait:
      return add_ages_of_wait(rank, found);
    case Access::pause:
      return add_news(rank, found);
    default:
      return add_ages(rank, found);
  }
}

std::vector<Choice> Explorer::choices() {
  std::vector<Choice> found;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!fibers_.ended(rank)) add_choices(rank, found);
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
  memory.reset(program_.describe);
  history_ = {};
  checkpoints_ = {};
  for (Round& round : rounds_) begin_round(round);
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

// Goes back to the next choice that was not tried; returns false when there is none.
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
  static constexpr const char* verbs[] = {"?",         "loads",          "stores",
                                          "exchanges", "has waited for", "pauses"};
  std::string text;
  for (const Step& step : steps_) {
    text += "  rank " + std::to_string(step.rank) + " " + verbs[static_cast<int>(step.access)] +
            " " + step.name + " of rank " + std::to_string(step.owner) + ": " +
            std::to_string(step.value) + "\n";
  }
  return text;
}

// ---- called by the code under test

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