// Interleaved, verified samples of the variants of a gradient reduction.
#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/calls.hpp"
#include "common/budget.hpp"
#include "common/pages.hpp"
#include "common/ranks.hpp"
#include "gradient/options.hpp"
#include "gradient/rings.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/reduction_plan.hpp"

namespace ropewalk::bench {

// One variant at one length; a time a round, in microseconds of a call.
struct GradientColumn {
  std::string variant;
  int iterations = 1;                 // calls a round
  std::vector<double> wall;           // of the slowest rank
  std::vector<double> communication;  // inside communication calls, the ranks' mean
  int threads = 0;                    // of a rank; 0: none but the caller
  std::string pages;                  // under the buffers of the variant, where they are an axis
};

struct GradientResult {
  std::size_t length = 0;  // floats
  std::vector<GradientColumn> columns;
  std::vector<double> limit;  // memory's, on one node
  std::string path;           // of the plan
  std::string wrong;          // empty: verified
};

class GradientMeasurement {
 public:
  // Collective. Throws Error(memory) on every rank where buffers for `longest` floats cannot be
  // had.
  GradientMeasurement(const GradientOptions& options, const Ranks& ranks, std::size_t longest);
  ~GradientMeasurement();

  // Collective; to be called for each of the lengths, in their order.
  GradientResult measure(std::size_t length);
  const Budget& budget() const noexcept { return *budget_; }
  int nodes() const noexcept { return node_.nodes(); }
  // A rank's threads of each improved ring, as "1, 2".
  std::string threads() const;
  // The pages that the rings' buffers have got, a line a kind.
  std::vector<BackingReport> ring_backings() const;
  const BackingReport& backing() const noexcept { return backing_; }

 private:
  struct Variant;
  void make_rings(std::size_t longest);
  bool limited(std::size_t length) const;
  double full_sample_us() const;
  std::vector<Expected> expected() const;
  Variant variant(const std::string& name, std::size_t length);
  Variant improved(ImprovedRing& ring, std::size_t length);
  std::string name_of(const ImprovedRing& ring) const;
  void add(std::vector<Variant>& variants, GradientResult& result, const std::string& name,
           Variant made);
  void calibrate(Variant& variant, GradientColumn& column, double wanted_us) const;
  void sample(Variant& variant, GradientColumn& column) const;
  void verify(Variant& variant, std::size_t length, std::string& wrong);
  double sample_limit(std::size_t length);

  const GradientOptions& options_;
  const Ranks& ranks_;
  Plain plain_;
  Collectives node_;
  Buffer<float> input_;
  Buffer<float> output_;
  std::unique_ptr<PublishedRing> published_;
  std::vector<std::unique_ptr<RingBuffers>> ring_buffers_;  // one of each kind of pages
  std::vector<std::unique_ptr<ImprovedRing>> improved_;     // one of each pair of the axes
  std::unique_ptr<ReductionPlan> plan_;                     // of the length at hand
  Everybody everybody_;
  BackingReport backing_;
  int rounds_;
  std::optional<Budget> budget_;
  unsigned serial_ = 0;
};

// Returns the bytes of the buffers of all ranks of a node for vectors of that many floats, where
// rings keep theirs on so many kinds of pages.
std::size_t memory_of(std::size_t length, int node_ranks, std::size_t kinds_of_pages);

}  // namespace ropewalk::bench
