// Measuring the columns of one lattice in turn, in the same processes and buffers.
#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <vector>

#include "common/budget.hpp"
#include "common/pages.hpp"
#include "common/ranks.hpp"
#include "common/report.hpp"
#include "comms/faces.hpp"
#include "comms/options.hpp"

namespace ropewalk::bench {

// The results of one column: a strategy on a kind of pages, or the limit (a copy on those pages).
struct Column {
  std::string strategy;  // "limit" for the copy
  std::string pages;
  std::string chosen;  // what "automatic" came to; the way of copying for the limit
  int iterations = 1;  // exchanges a sample
  std::vector<std::vector<double>> us;  // [rank][round], microseconds an exchange
  bool verified = false;                // every rank, every round
  std::string wrong;                    // the first thing that was wrong, if it was
};

// [round]: the slowest rank of each round, since an exchange is over when the last has its faces.
std::vector<double> slowest(const Column& column);

struct Result {
  LocalLattice lattice;
  std::string buffers;  // "hot" or "cold"
  int slots = 1;
  std::vector<Column> columns;
};

class Measurement {
 public:
  // Collective. Allocates the pools that the largest lattice needs. Errors are joint.
  Measurement(const CommsOptions& options, const Ranks& ranks, const std::vector<int>& rank_grid,
              const std::vector<LocalLattice>& lattices);
  ~Measurement();

  const CartesianGrid& grid() const noexcept { return grid_; }
  int lanes() const noexcept { return endpoints_.lanes(); }
  int rounds() const noexcept { return rounds_; }  // at most, of a lattice
  const Budget& budget() const noexcept { return budget_; }
  const std::map<std::string, BackingReport>& backings() const noexcept { return backings_; }
  // Collective.
  Result measure(const LocalLattice& lattice, const std::string& buffers, Report& report,
                 double share, double share_each);

 private:
  struct Case;
  int slots_for(const LocalLattice& lattice, const std::string& buffers) const;
  void make_shared_pool(std::size_t bytes);
  bool add_halos(Case& one, Strategy strategy, EndpointSet& endpoints);
  bool wants_plain() const;
  double full_sample_us(bool exchanges) const;
  Expected expected(const LocalLattice& lattice, const std::string& buffers) const;
  std::vector<Expected> expected(const std::vector<LocalLattice>& lattices) const;
  std::vector<Case> cases(const LocalLattice& lattice, int slots);
  double sample(Case& one, int iterations);
  double checked_sample(Case& one, int iterations);
  int calibrate(Case& one, int slots, double shortened);
  Column column(Case& one) const;

  const CommsOptions& options_;
  const Ranks& ranks_;
  CartesianGrid grid_;
  EndpointSet endpoints_;
  bool wants_plain_;
  std::unique_ptr<EndpointSet> plain_;  // the MPI alone: one communicator, no comm thread
  int rounds_;
  Budget budget_;
  std::uint64_t serial_ = 0;  // of samples; the same on all ranks, part of the pattern
  std::map<std::string, PageBlock> pools_;
  Buffer<std::byte>
      shared_pool_;  // huge pages of the arena, for `direct`; empty where not possible
  std::map<std::string, BackingReport> backings_;
};

}  // namespace ropewalk::bench
