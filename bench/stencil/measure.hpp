// Interleaved, checked samples of steps; every way and form of computing has its turn in each
// round.
#pragma once

#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "common/budget.hpp"
#include "common/pages.hpp"
#include "common/ranks.hpp"
#include "ropewalk/schedule.hpp"
#include "stencil/options.hpp"
#include "stencil/ways.hpp"

namespace ropewalk::bench {

struct StencilTimes {
  std::string way;
  Computing computing = Computing::none;
  std::string path;
  int iterations = 1;
  std::vector<double> us = {};  // of a step, one value a round, of the slowest rank
  bool by_mpi() const { return path == "mpi"; }
};

struct StencilSizeResult {
  std::string memory;  // of the cubes
  std::size_t face_bytes = 0;
  int edge = 0;
  std::vector<StencilTimes> times;
  BackingReport backing;
  std::string wrong;  // of any rank; empty: all right
};

class StencilMeasurement {
 public:
  // Collective.
  StencilMeasurement(const StencilOptions& options, const Ranks& ranks);

  // Collective; to be called for each kind of memory and size, in their order.
  StencilSizeResult measure(const std::string& memory, std::size_t face_bytes);
  const Budget& budget() const noexcept { return *budget_; }
  const CartesianGrid& grid() const noexcept { return grid_; }
  int rounds() const noexcept { return rounds_; }

 private:
  struct Column;

  double full_sample_us() const;
  Expected expected(std::size_t face_bytes) const;
  std::vector<Column> columns(StencilBlock& block);
  void step(StencilWay& way, StencilBlock& block, Computing computing);
  double sample(Column& column, StencilBlock& block, int iterations);
  void calibrate(Column& column, StencilBlock& block, double wanted_us);
  double checked(Column& column, StencilBlock& block, std::string& wrong);

  const StencilOptions& options_;
  const Ranks& ranks_;
  int rounds_;
  CartesianGrid grid_;
  EndpointSet endpoints_;
  ThreadTeam team_;
  std::optional<Budget> budget_;
  std::uint64_t serial_ = 0;
};

}  // namespace ropewalk::bench
