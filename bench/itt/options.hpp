// The command line of ropewalk-bench-itt, and the lattices that follow from it.
#pragma once

#include <string>
#include <vector>

#include "common/program.hpp"
#include "ropewalk/lattice/lattice.hpp"
#include "ropewalk/lattice/operators.hpp"

namespace ropewalk::bench {

struct IttOptions {
  CommonOptions common;
  // The options as they were written.
  std::string L = "8,12,16,24";
  std::string mpi_grid;
  std::string volume = "node";
  std::string precision = "single";
  std::string exchanges = "sequential,overlap";
  std::string faces = "full";
  std::string tables = "memory,comms,summary,operators";
  int Ls = 16;
  int threads = 0;
  int lanes = 1;
  int fields = 4;  // at once, in the row of several right-hand sides
  int shm = 0;     // MB, 0: no bound
  int calls = 0;   // 0: as many as fit the time
  bool huge = false;

  // What check() has made of them.
  std::vector<int> sizes;
  std::vector<int> extents;  // of --mpi-grid; empty: chosen
  std::vector<lattice::ExchangeMode> exchange_list;
  std::vector<lattice::FacePrecision> faces_list;
  std::vector<std::string> table_list;

  bool default_sizes = false;

  bool wants(const std::string& table) const;
};

void describe(CLI::App& app, IttOptions& options);
// Throws Error(argument). Returns true where several threads will call MPI.
bool check(IttOptions& options);

// How ranks, nodes and lattices lie in each other.
struct IttLayout {
  lattice::Extents rank_grid{1, 1, 1, 1};
  lattice::Extents in_node{1, 1, 1, 1};  // the ranks of one node
  int ranks = 1;
  int ranks_per_node = 1;
  bool per_node = true;  // L^4 a node; else a rank

  std::vector<int> sizes;    // L of the summary: --L, of the default those that can be divided
  std::vector<int> volumes;  // likewise of tables V and VI
  std::vector<std::string> notes;  // what was left out, and why

  int nodes() const noexcept { return ranks / ranks_per_node; }
  lattice::Extents local(int L) const;  // of one rank; Error(argument) where it cannot be divided
  lattice::Extents global(int L) const;
};
// Throws Error(argument), alike on every rank: the grid does not fit the ranks, or the ranks of a
// node are no block of it, or a lattice cannot be divided.
IttLayout itt_layout(const IttOptions& options, int ranks, int ranks_per_node);

}  // namespace ropewalk::bench
