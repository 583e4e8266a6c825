// The command line of ropewalk-bench-fft.
#pragma once

#include <string>
#include <vector>

#include "common/program.hpp"
#include "fft/distributed.hpp"

namespace ropewalk::bench {

struct FftOptions {
  CommonOptions common;
  // The options as they were written.
  std::string grids = "32,64,128,90.100.75";
  std::string decomposition = "slab,pencil";
  std::string mpi_grid;
  std::string ways = "alltoallw,packed,collectives,exchange";
  std::string numbers = "complex,real";
  std::string library = "kissfft";
  int threads = 1;

  // What check() has made of them.
  std::vector<Triple> grid_list;
  std::vector<std::string> decomposition_list;
  std::vector<int> extents;  // of --mpi-grid; empty: as square as the ranks allow
  std::vector<std::string> way_list;
  std::vector<std::string> number_list;
};

void describe(CLI::App& app, FftOptions& options);
void check(FftOptions& options);  // throws Error(argument)

// The grid of ranks of a decomposition. Throws Error(argument), alike on every rank.
std::array<int, 2> fft_rank_grid(const FftOptions& options, const std::string& decomposition,
                                 int ranks);
// All cases that are measured, in their order. Throws Error(argument), alike on every rank, where a
// grid has fewer cells than ranks along an axis.
std::vector<FftCase> fft_cases(const FftOptions& options, int ranks);

}  // namespace ropewalk::bench
