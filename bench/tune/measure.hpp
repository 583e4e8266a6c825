// TuneMeasurement runs the searches on this machine: it makes communicators and channels whose
// thresholds force each way, and measures the same calls with each of them.
#pragma once

#include <functional>
#include <map>
#include <string>
#include <vector>

#include "common/pages.hpp"
#include "common/ranks.hpp"
#include "p2p/ways.hpp"
#include "ropewalk/tuning.hpp"
#include "tune/copies.hpp"
#include "tune/places.hpp"
#include "tune/questions.hpp"
#include "tune/sampling.hpp"

namespace ropewalk::bench {

struct TuneAnswer {
  const Question* question = nullptr;
  std::size_t standard = 0;  // the default
  std::size_t before = 0;    // in force before the search: the profile's, or the default
  Finding finding;
  std::string skipped;  // why it was not measured; empty where it was
};

class TuneMeasurement {
 public:
  // Collective. Throws Error(argument) for one rank and for nodes with different numbers of ranks,
  // and Error(memory) where there is too little memory for the buffers.
  explicit TuneMeasurement(const Ranks& ranks);

  // answer() and costs() are collective. `effort` holds for one way at one size. Every rank finds
  // the same, since all times are those of the slowest rank.
  TuneAnswer answer(const Question& question, const Effort& effort);
  // Returns the times of `op` by each path that it can take with this kind of memory.
  std::vector<TuneCost> costs(Op op, TuneMemory memory, const Effort& effort);

  // The same for several nodes, by each algorithm.
  std::vector<TuneCost> costs_over_nodes(Op op, const Effort& effort);
  // From now on costs are measured at sizes between the usual ones.
  void measure_between() { between_sizes_ = true; }

  // Returns how many samples a question takes, about: the calls of in_turns(), each counted once
  // for each of its ways.
  int samples_of(const Question& question) const;
  int samples_of_costs() const;  // the same for costs()
  // Returns the lines of a profile with all values that were found.
  std::string found() const { return with_found("", found_); }
  std::size_t largest() const noexcept { return largest_; }  // bytes of a buffer
  const NodePlaces& places() const noexcept { return places_; }
  bool crowded() const noexcept { return situation_.crowded; }

 private:
  struct Way;

  std::vector<std::size_t> sizes_around(const Question& question, std::size_t before) const;
  std::string reason_to_skip(const Question& question) const;
  std::string reason_to_skip_over_nodes(const Question& question,
                                        const std::vector<std::size_t>& sizes) const;
  std::string algorithm(Op op, std::size_t bytes, std::string_view lines) const;
  const std::vector<std::size_t>& sizes_of_costs() const;
  Finding search(const Question& question, std::size_t before, const Effort& effort);
  std::vector<Times> times_of(const Question& question, const std::vector<Way>& ways,
                              std::size_t amount, const Effort& effort);
  Sample message_sample(Channel& channel, TuneMemory memory, std::size_t bytes);
  Sample call_sample(Collectives& node, Op op, TuneMemory memory, bool rewritten,
                     std::size_t bytes);
  float* send(TuneMemory memory) const;
  float* receive(TuneMemory memory) const;
  std::size_t buffer_of(Op op, std::size_t bytes) const;
  std::size_t in_force(tuning::Id id) const;

  const Ranks& ranks_;
  NodePlaces places_;
  Situation situation_;  // of calls over nodes
  bool between_sizes_ = false;
  tuning::Facts facts_;
  std::map<std::string, std::size_t, std::less<>> found_;  // by the name of the threshold
  std::size_t largest_ = 0;                                // bytes of a buffer
  PlainMessages plain_;
  Buffer<float> arena_send_;
  Buffer<float> arena_receive_;
  PageBlock private_send_;
  PageBlock private_receive_;
};

}  // namespace ropewalk::bench
