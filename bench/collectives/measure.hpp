// Interleaved, verified samples of collectives.
#pragma once

#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "collectives/calls.hpp"
#include "collectives/model.hpp"
#include "collectives/options.hpp"
#include "common/budget.hpp"
#include "common/pages.hpp"
#include "common/ranks.hpp"
#include "common/report.hpp"

namespace ropewalk::bench {

// What was measured in a case: microseconds of a call, one value a round, of the slowest rank.
struct CollectiveResult : CollectiveCase {
  CollectiveResult() = default;
  explicit CollectiveResult(const CollectiveCase& one) : CollectiveCase(one) {}

  std::vector<double> plain;
  std::vector<double> ropewalk;
  // The faster kind of stores, or one value of a network; empty where there is none.
  std::vector<double> limit;
  int iterations = 1;  // of ropewalk's samples
  int plain_iterations = 1;
  std::string path;
  std::string wrong;  // the first wrong element of any rank; empty when all was right
  std::optional<double> predicted_us;
};

// Whether the buffers of the largest size fit the free memory of every node; collective.
bool fits_memory(const CollectivesBenchOptions&, const Ranks&);

class CollectivesMeasurement {
 public:
  // Collective. Throws Error(argument) for one rank, Error(memory) where buffers do not fit.
  CollectivesMeasurement(const CollectivesBenchOptions& options, const Ranks& ranks);
  ~CollectivesMeasurement();

  // Collective; to be called for each of cases(), in their order.
  CollectiveResult measure(const CollectiveCase& one);
  const Budget& budget() const noexcept { return *budget_; }
  int rounds() const noexcept { return rounds_; }
  bool direct() const noexcept { return node_.direct(); }
  bool over_nodes() const noexcept { return ranks_on_.size() > 1; }
  const std::string& reason() const noexcept { return node_.reason(); }
  // Returns the number of ranks on each node, the root's first; empty where ropewalk does not serve
  // them.
  const std::vector<int>& ranks_on() const noexcept { return ranks_on_; }
  const std::map<std::string, BackingReport>& backings() const noexcept { return backings_; }

 private:
  struct Memory;
  struct Column;

  void make_memory(const std::string& kind, std::size_t floats);
  Expected expected(const CollectiveCase& one) const;
  double full_sample_us() const;
  Run run_of(const CollectiveCase& one);
  bool limited(std::size_t bytes) const;
  std::vector<Column> columns(std::size_t bytes);
  double sample(Column& column, Run run);
  void sample_in_turns(std::vector<Column>& columns, const Run& run, int number);
  void verify(Column& column, const Run& run, std::string& wrong);
  void calibrate(Column& column, const Run& run, double wanted_us);
  std::string all_rounds(std::vector<Column>& columns, const Run& run);
  void round(std::vector<Column>& columns, const Run& run, bool checks, int number,
             std::string& wrong);
  void keep(const std::vector<Column>& columns, CollectiveResult& result) const;
  std::string path(Run run);
  Model measure_model();

  const CollectivesBenchOptions& options_;
  const Ranks& ranks_;
  int rounds_;
  Plain plain_;
  Collectives node_;
  std::map<std::string, std::unique_ptr<Memory>> memory_;
  std::map<std::string, BackingReport> backings_;
  Everybody everybody_;  // the arena's buffers
  std::vector<int> ranks_on_;
  std::optional<Model> model_;
  std::optional<Budget> budget_;
  Serial serial_ = 0;
};

}  // namespace ropewalk::bench
