// The search behind model.hpp: which rank goes on, what it sees, and which states were met.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "model/fibers.hpp"
#include "model/memory.hpp"
#include "model/model.hpp"

namespace ropewalk::model {

enum class Access { none, load, store, exchange, wait, pause };

// What a rank will do when it is chosen.
struct Pending {
  Access access = Access::none;
  const void* flag = nullptr;
  std::uint64_t expected = 0;  // by an exchange
  bool (*ready)(const void*) = nullptr;
  const void* test = nullptr;
};

// The rank that goes on, and how many values older than the newest its load returns; behind a
// pause, which of the flags it has looked at has news.
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

// What a rank has done since it last paused.
struct Round {
  std::uint64_t accesses = 0;
  bool found_news = false;             // or stored
  std::vector<const void*> looked_at;  // flags
};

// A node on the way from the first choice to the current one.
struct Frame {
  Key key;
  std::vector<Choice> choices;
  std::size_t next = 0;
  double schedules = 0;  // below the choices already tried
};

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
  bool exchange(const void* flag, std::uint64_t& expected, std::uint64_t desired,
                std::memory_order order);
  void wait(bool (*ready)(const void*), const void* test, const void* frame);
  void pause(std::uint64_t state);
  void check(const char* problem) {
    if (problem != nullptr) fail(problem);
  }
  void fail(const char* what);
  void checkpoint(std::uint64_t state);
  void checkpoint_at(std::uint64_t state);

 private:
  double run_once();
  void begin();
  void finish();
  void resume(Choice choice);
  std::vector<Choice> choices();
  void add_choices(int rank, std::vector<Choice>& found);
  void add_ages(int rank, std::vector<Choice>& found);
  void add_ages_of_wait(int rank, std::vector<Choice>& found);
  void add_news(int rank, std::vector<Choice>& found);
  bool all_ended() const;
  bool back_up(double schedules);
  Key key();
  void stop(Access access, const void* flag);
  void remember(int rank, std::uint64_t value);
  bool weakens(const void* flag, Side side);
  static void begin_round(Round& round);
  void note(Access access, const void* flag, std::uint64_t value);
  void note_loaded(const void* flag, std::size_t index, std::uint64_t value);
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
  std::array<Round, max_ranks> rounds_{};
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

extern Explorer* current;  // null: no search is on

}  // namespace ropewalk::model
