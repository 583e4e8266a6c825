#include "model/stealing/search.hpp"

#include <algorithm>
#include <cstdint>
#include <memory>
#include <unordered_set>
#include <vector>

#include "model/fibers.hpp"
#include "schedule/ranges.hpp"

namespace ropewalk::model::stealing {
namespace {

constexpr std::size_t largest_runs = 3000000;
constexpr std::size_t largest_depth = 2000;

enum class Access { none, load, exchange, barrier };
constexpr const char* verbs[] = {"begins", "loads", "exchanges", "passes the barrier"};

struct Values {                        // of one word
  std::vector<std::uint64_t> all;      // oldest first
  std::vector<std::size_t> last_seen;  // the index, by worker
};

struct Worker {
  Access access = Access::none;  // what it does when it is chosen
  int word = 0;
  std::uint64_t expected = 0;       // of an exchange
  std::vector<std::uint64_t> read;  // since its last call of take(), after the loop
};

struct Choice {
  int worker;
  std::size_t index;  // of the value seen
};

struct Frame {
  std::vector<Choice> choices;
  std::size_t next = 0;
};

class Search {
 public:
  explicit Search(const Case& about) : about_(about), fibers_(about.workers) {}
  Result explore();

  int create_word();
  std::uint64_t load(int word);
  void store(int word, std::uint64_t value);
  bool exchange(int word, std::uint64_t& expected, std::uint64_t desired);

 private:
  void work(int worker);
  void run_block(int loop, std::uint32_t block);
  void barrier(int loop);
  void show_all();
  void stop(Access access, int word, std::uint64_t expected);
  std::size_t see(int word);

  void begin();
  void finish();
  bool run_once();  // false at a violation
  void resume(Choice choice);
  std::vector<Choice> choices() const;
  void add_choices(int worker, std::vector<Choice>& found) const;
  bool all_ended() const;
  bool back_up();
  std::string key() const;
  void report(const std::string& violation);

  Case about_;
  Fibers fibers_;
  std::unique_ptr<schedule::Ranges> ranges_;
  std::vector<Values> words_;
  std::vector<Worker> workers_;
  std::vector<int> times_run_;  // by loop and block
  int arrived_ = 0;             // at the barrier, of all loops
  int running_ = -1;
  std::size_t index_ = 0;  // of the value that the worker chosen sees
  std::vector<std::string> steps_;
  std::vector<Frame> frames_;
  std::unordered_set<std::string> done_;
  Result result_;
};

Search* current = nullptr;

// ---- words

int Search::create_word() {
  words_.push_back(
      {{0}, std::vector<std::size_t>(static_cast<std::size_t>(about_.workers), std::size_t{0})});
  return static_cast<int>(words_.size()) - 1;
}

// The worker waits to be chosen.
void Search::stop(Access access, int word, std::uint64_t expected) {
  Worker& self = workers_[running_];
  self.access = access;
  self.word = word;
  self.expected = expected;
  fibers_.yield();
}

std::size_t Search::see(int word) {
  Values& values = words_[word];
  values.last_seen[running_] = index_;
  workers_[running_].read.push_back(values.all[index_]);
  steps_.push_back("  worker " + std::to_string(running_) + " " +
                   verbs[static_cast<int>(workers_[running_].access)] + " word " +
                   std::to_string(word) + ": " + std::to_string(values.all[index_] >> 32U) + "-" +
                   std::to_string(values.all[index_] & 0xffffffffU) + "\n");
  return index_;
}

std::uint64_t Search::load(int word) {
  if (running_ < 0) return words_[word].all.back();
  stop(Access::load, word, 0);
  return words_[word].all[see(word)];
}

void Search::store(int word, std::uint64_t value) {
  words_[word].all.push_back(value);
  if (running_ >= 0) words_[word].last_seen[running_] = words_[word].all.size() - 1;
}

bool Search::exchange(int word, std::uint64_t& expected, std::uint64_t desired) {
  stop(Access::exchange, word, expected);
  const std::uint64_t found = words_[word].all[see(word)];
  if (found != expected) {
    expected = found;
    return false;
  }
  store(word, desired);
  return true;
}

// ---- what a worker does

void Search::work(int worker) {
  for (int loop = 0; loop < about_.loops; ++loop) {
    for (;;) {
      workers_[worker].read.assign(1, static_cast<std::uint64_t>(loop));
      const schedule::Ranges::Taken taken = ranges_->take(worker);
      if (taken.kind == schedule::Ranges::Taken::Kind::done) break;
      if (taken.kind == schedule::Ranges::Taken::Kind::absent) {
        report("a worker is taken for absent");
        fibers_.drop_self();
      }
      run_block(loop, taken.number);
    }
    barrier(loop);
  }
}

void Search::run_block(int loop, std::uint32_t block) {
  const bool known = static_cast<int>(block) < about_.blocks;
  steps_.push_back("  worker " + std::to_string(running_) + " runs block " + std::to_string(block) +
                   " in loop " + std::to_string(loop) + "\n");
  if (!known) {
    report("a block that is not there is run");
  } else if (++times_run_[loop * about_.blocks + static_cast<int>(block)] > 1) {
    report("a block is run twice");
  } else {
    return;
  }
  fibers_.drop_self();
}

void Search::barrier(int loop) {
  ++arrived_;
  const bool last = arrived_ == (loop + 1) * about_.workers;
  if (last) {
    show_all();
    const auto begin = times_run_.begin() + loop * about_.blocks;
    if (std::find(begin, begin + about_.blocks, 0) != begin + about_.blocks) {
      report("a block is not run");
      fibers_.drop_self();
    }
  }
  stop(Access::barrier, loop, 0);
}

void Search::show_all() {
  for (Values& values : words_) {
    std::fill(values.last_seen.begin(), values.last_seen.end(), values.all.size() - 1);
  }
}

// ---- the search

void Search::add_choices(int worker, std::vector<Choice>& found) const {
  const Worker& self = workers_[worker];
  if (self.access == Access::barrier) {
    if (arrived_ >= (self.word + 1) * about_.workers) found.push_back({worker, 0});
    return;
  }
  const Values& values = words_[self.word];
  const std::size_t newest = values.all.size() - 1;
  for (std::size_t index = values.last_seen[worker]; index <= newest; ++index) {
    const bool stale_match =
        self.access == Access::exchange && index != newest && values.all[index] == self.expected;
    if (!stale_match) found.push_back({worker, index});
  }
}

std::vector<Choice> Search::choices() const {
  std::vector<Choice> found;
  for (int worker = 0; worker < about_.workers; ++worker) {
    if (!fibers_.ended(worker)) add_choices(worker, found);
  }
  return found;
}

bool Search::all_ended() const {
  for (int worker = 0; worker < about_.workers; ++worker) {
    if (!fibers_.ended(worker)) return false;
  }
  return true;
}

std::string Search::key() const {
  std::vector<std::uint64_t> state;
  for (int worker = 0; worker < about_.workers; ++worker) {
    const Worker& self = workers_[worker];
    state.push_back(fibers_.ended(worker) ? 1 : 0);
    state.push_back(static_cast<std::uint64_t>(self.access));
    state.push_back(self.read.size());
    state.insert(state.end(), self.read.begin(), self.read.end());
  }
  for (const Values& values : words_) {
    const std::size_t first = *std::min_element(values.last_seen.begin(), values.last_seen.end());
    state.push_back(values.all.size() - first);
    for (const std::size_t seen : values.last_seen) state.push_back(seen - first);
    state.insert(state.end(), values.all.begin() + static_cast<std::ptrdiff_t>(first),
                 values.all.end());
  }
  state.insert(state.end(), times_run_.begin(), times_run_.end());
  return {reinterpret_cast<const char*>(state.data()), state.size() * sizeof(std::uint64_t)};
}

void Search::resume(Choice choice) {
  running_ = choice.worker;
  index_ = choice.index;
  fibers_.resume(choice.worker);
  running_ = -1;
}

void Search::begin() {
  words_.clear();
  steps_.clear();
  workers_.assign(static_cast<std::size_t>(about_.workers), {});
  times_run_.assign(static_cast<std::size_t>(about_.loops * about_.blocks), 0);
  arrived_ = 0;
  ranges_ = std::make_unique<schedule::Ranges>(about_.workers, about_.sharing);
  ranges_->reset(static_cast<std::uint64_t>(about_.blocks));
  show_all();
  for (int worker = 0; worker < about_.workers; ++worker) {
    fibers_.start(worker, [this, worker] { work(worker); });
    resume({worker, 0});
  }
}

void Search::finish() {
  for (int worker = 0; worker < about_.workers; ++worker) fibers_.drop(worker);
  running_ = -1;
}

// Follows the frames, then goes on to the end or to a state that was met before.
bool Search::run_once() {
  ++result_.runs;
  begin();
  for (std::size_t depth = 0; result_.violation.empty(); ++depth) {
    if (depth < frames_.size()) {
      resume(frames_[depth].choices[frames_[depth].next]);
      continue;
    }
    if (all_ended() || !done_.insert(key()).second) return true;
    ++result_.states;
    frames_.push_back({choices()});
    if (frames_.back().choices.empty()) {
      report("deadlock");
    } else if (depth > largest_depth) {
      report("a schedule does not end");
    } else {
      resume(frames_.back().choices.front());
    }
  }
  return false;
}

bool Search::back_up() {
  while (!frames_.empty()) {
    if (++frames_.back().next < frames_.back().choices.size()) return true;
    frames_.pop_back();
  }
  return false;
}

Result Search::explore() {
  current = this;
  for (;;) {
    const bool right = run_once();
    finish();
    if (!right || !back_up()) break;
    if (result_.runs >= largest_runs) {
      result_.violation = "the search was given up: too many schedules";
      break;
    }
  }
  current = nullptr;
  return result_;
}

void Search::report(const std::string& violation) {
  result_.violation = violation;
  for (const std::string& step : steps_) result_.schedule += step;
}

}  // namespace

Result explore(const Case& about) { return Search(about).explore(); }

int create_word() noexcept { return current->create_word(); }
std::uint64_t load(int word) noexcept { return current->load(word); }
void store(int word, std::uint64_t value) noexcept { current->store(word, value); }
bool exchange(int word, std::uint64_t& expected, std::uint64_t desired) noexcept {
  return current->exchange(word, expected, desired);
}

}  // namespace ropewalk::model::stealing
