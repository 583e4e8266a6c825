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
  int threads = 0;  // of a rank, for `improved`; 0: the cores a rank has, at least 2, at most 8

  // What check() has made of them.
  std::vector<std::size_t> length_list;  // floats
  std::vector<std::string> variant_list;
  double line_rate = 0;  // bytes/s of a node, one way: ROPEWALK_LINE_RATE; 0: not known
};

const std::vector<std::string>& variant_names();
void describe(CLI::App& app, GradientOptions& options);
// Throws Error(argument). True: threads call MPI.
bool check(GradientOptions& options);

}  // namespace ropewalk::bench
