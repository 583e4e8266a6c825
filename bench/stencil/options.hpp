// The command line of ropewalk-bench-stencil.
#pragma once

#include <string>
#include <vector>

#include "common/program.hpp"

namespace ropewalk::bench {

enum class Computing { none, after, meanwhile };
const std::vector<std::string>& computing_names();  // none, blocking, overlapped
const std::string& name(Computing);

struct StencilOptions {
  CommonOptions common;
  // The options as they were written.
  std::string sizes = "4K,16K,64K,256K,1M";
  std::string mpi_grid;
  std::string ways = "isend,packed,neighbor_alltoallw,direct";
  std::string computing = "none,blocking,overlapped";
  std::string memory = "arena";
  int threads = 1;  // of each rank
  bool periodic = false;

  // What check() has made of them.
  std::vector<std::size_t> size_list;
  std::vector<int> extents;  // of --mpi-grid; empty: as cubic as the ranks allow
  std::vector<std::string> way_list;
  std::vector<std::string> memory_list;
  std::vector<Computing> computing_list;
};

void describe(CLI::App& app, StencilOptions& options);
// Throws Error(argument). Returns true where comm threads are needed: never.
bool check(StencilOptions& options);

// Cells along an edge of the cube whose face is nearest to so many bytes.
int edge_of(std::size_t face_bytes);

}  // namespace ropewalk::bench
