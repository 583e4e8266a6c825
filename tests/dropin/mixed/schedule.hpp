// What all ranks do in one run: a list of steps in an order that all of them know. A rank executes
// its own part of it, one step after the other.
//
// Why no schedule hangs on a valid MPI, even one that buffers nothing: a step blocks a rank only
// until other ranks have entered the same step, or have done what is of earlier steps. So of all
// steps in which a rank stands, the earliest always ends. The actions (actions.hpp) keep to that:
//   - a blocking send comes after the receive is posted, or in the same step as a blocking receive;
//     what was sent without blocking, or buffered, may be received at any later step;
//   - a wait comes after all that it waits for was started, on both sides;
//   - collectives are a step of all their ranks, and so of one order on every communicator;
//   - locks are held within a step, or shared by all.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "random.hpp"
#include "world.hpp"

namespace mixed {

class Schedule {
 public:
  struct Step {
    double time;
    Ranks ranks;
    std::string text;
    std::function<void()> run;
  };

  explicit Schedule(Random& numbers) : random(numbers) {}

  // `run` is called on these ranks alone. Steps are done in the order of time, which is no time of
  // a clock; those of one time in the order in which they were added.
  void add(double time, Ranks ranks, std::string text, std::function<void()> run);
  void add(double time, int rank, std::string text, std::function<void()> run) {
    add(time, Ranks{1} << rank, std::move(text), std::move(run));
  }
  // On each of these ranks at a time of its own, later than that one; returns the last.
  double add_on_each(double time, Ranks ranks, const std::string& text,
                     const std::function<void()>& run);
  double begin() { return random.real(); }
  // Returns a time later than that one: mostly soon.
  double after(double time);
  // Between two times.
  double within(double from, double to) { return from + (to - from) * random.real(); }
  int new_tag() { return ++tags_; }

  void sort();
  void execute(std::uint64_t seed) const;
  std::uint64_t hash() const;  // of the text: equal on all ranks
  void show() const;
  std::size_t steps() const { return steps_.size(); }

  Random& random;

 private:
  std::vector<Step> steps_;
  int tags_ = 0;
};

}  // namespace mixed
