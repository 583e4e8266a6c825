// The command line of ropewalk-bench-overlap.
#pragma once

#include <string>
#include <vector>

#include "common/program.hpp"
#include "itt/options.hpp"
#include "ropewalk/endpoint.hpp"

namespace ropewalk::bench {

struct OverlapOptions {
  CommonOptions common;
  // The options as they were written.
  std::string L = "8,16";
  std::string operators = "wilson-eo";
  std::string mpi_grids;
  std::string volume = "rank";
  std::string precision = "single";
  std::string comm_threads;
  std::string strategies = "concurrent,direct";
  std::string faces = "full";
  int Ls = 16;
  int threads = 0;
  int lanes = 0;

  // What check() has made of them.
  std::vector<int> sizes;
  std::vector<std::string> operator_list;
  std::vector<std::vector<int>> grids;  // of --mpi-grid; empty: all ranks in the last dimension
  std::vector<int> comm_list;           // empty: 0, 1, 2, 4, ... below the threads
  std::vector<Strategy> strategy_list;
  std::vector<lattice::FacePrecision> faces_list;
};

void describe(CLI::App& app, OverlapOptions& options);
// Throws Error(argument). Returns true where several threads will call MPI.
bool check(OverlapOptions& options);

// They need the numbers of ranks and threads. An Error(argument) is the same on every rank.
std::vector<IttLayout> overlap_layouts(const OverlapOptions& options, int ranks,
                                       int ranks_per_node);
std::vector<int> comm_threads(const OverlapOptions& options, int threads);

}  // namespace ropewalk::bench
