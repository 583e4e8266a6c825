// The command line of ropewalk-bench-comms.
#pragma once

#include <string>
#include <vector>

#include "common/program.hpp"
#include "comms/faces.hpp"
#include "ropewalk/endpoint.hpp"

namespace ropewalk::bench {

struct CommsOptions {
  CommonOptions common;
  // The options as they were written.
  std::string L = "4,8,..,32";
  std::string grid;
  std::string mpi_grid;
  std::string strategies = "sequential,concurrent,threaded,direct";
  std::string pages = "huge,memalign";
  std::string memory = "any";
  std::string buffers = "hot,cold";
  std::string line_rate;  // empty: of the box we are in, else measured
  int Ls = 8;
  int lanes = 0;
  int iterations = 0;  // 0: so many that a sample lasts sample_us

  // What check() has made of them.
  std::vector<int> extents;  // of --mpi-grid; empty: all ranks in the last dimension
  std::vector<int> sizes;    // of --L
  std::vector<int> global;   // of --grid; empty: the list of L
  std::vector<std::string> kinds;
  std::vector<Strategy> strategy_list;
  bool plain = false;  // a column of the MPI alone
  std::vector<std::string> buffer_list;
  double line_rate_mb = 0;  // of a rank, one direction; 0: measured
};

void describe(CLI::App& app, CommsOptions& options);
// Throws Error(argument). Returns true where comm threads are needed.
bool check(CommsOptions& options);

// The grid of ranks, and the lattices to measure, for a known number of ranks. Throws
// Error(argument), alike on every rank.
std::vector<int> rank_grid(const CommsOptions& options, int ranks);
std::vector<LocalLattice> lattices(const CommsOptions& options, const std::vector<int>& rank_grid);

}  // namespace ropewalk::bench
