// The command line of ropewalk-bench-overlap.
#pragma once

#include <string>
#include <vector>

#include "common/program.hpp"
#include "ropewalk/endpoint.hpp"

namespace ropewalk::bench {

struct OverlapOptions {
  CommonOptions common;
  // As written.
  std::string L = "8,16";
  std::string mpi_grid;
  std::string comm_threads;
  std::string strategies = "concurrent,direct";
  int Ls = 1;
  int threads = 0;
  int lanes = 0;
  int passes = 1;

  // As understood by check().
  std::vector<int> sizes;
  std::vector<int> extents;    // of --mpi-grid; empty: all ranks in the last dimension
  std::vector<int> comm_list;  // empty: 0, 1, 2, 4, ... below the threads, and all of them
  std::vector<Strategy> strategy_list;
};

void describe(CLI::App& app, OverlapOptions& options);
// Throws Error(argument). True where several threads will call MPI.
bool check(OverlapOptions& options);

// With ranks and threads known. Throws Error(argument), alike on every rank.
std::vector<int> overlap_grid(const OverlapOptions& options, int ranks);
std::vector<int> comm_threads(const OverlapOptions& options, int threads);

}  // namespace ropewalk::bench
