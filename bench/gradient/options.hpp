// The command line of ropewalk-bench-gradient.
#pragma once

#include <string>
#include <vector>

#include "common/program.hpp"

namespace ropewalk::bench {

struct GradientOptions {
  CommonOptions common;
  // The options as they were written.
  std::string lengths;  // empty: 1, 4, 16, ..., 2^28, as far as memory and --quick allow
  std::string variants = "published,improved,ropewalk,mpi";
  // Axes of `improved`, which is measured with each choice of them.
  std::string threads;         // of a rank; empty: the cores a rank has, at most 8
  std::string pages = "huge";  // under the buffers that it keeps
  std::string memory = "any";  // where these lie

  // What check() has made of them.
  std::vector<std::size_t> length_list;  // floats
  std::vector<std::string> variant_list;
  std::vector<int> thread_list;  // empty: as many as threads_for says
  std::vector<std::string> page_list;
  double line_rate = 0;  // bytes/s of a node, one way: ROPEWALK_LINE_RATE; 0: not known
};

const std::vector<std::string>& variant_names();
void describe(CLI::App& app, GradientOptions& options);
// Throws Error(argument). True: threads call MPI.
bool check(GradientOptions& options);

}  // namespace ropewalk::bench
