// The command line of ropewalk-bench-collectives.
#pragma once

#include <string>
#include <vector>

#include "collectives/shape.hpp"
#include "common/program.hpp"

namespace ropewalk::bench {

struct CollectivesBenchOptions {
  CommonOptions common;
  // The options as they were written.
  std::string ops =
      "barrier,allreduce,reduce,bcast,allgather,alltoall,gather,scatter,reduce_scatter";
  std::string sizes = "4,16,64,256,1K,4K,16K,64K,256K,1M,4M,16M,64M";
  std::string buffers = "hot,rewritten";
  std::string memory = "arena";
  bool model = false;
  bool ops_given = false;
  bool sizes_given = false;
  bool buffers_given = false;
  int iterations = 0;  // 0: so many that a sample lasts sample_us

  // What check() has made of them.
  std::vector<Op> op_list;
  std::vector<std::size_t> size_list;
  std::vector<std::string> buffer_list;
  std::vector<std::string> memory_list;
  double line_rate = 0;  // MB/s of a node, one way; 0: not known, which is so on one node
};

// The sizes to measure a collective at. Where they are the defaults and there is a network, all
// blocks of a rank together are no larger than the largest vector.
std::vector<std::size_t> sizes_of(const CollectivesBenchOptions& options, Op op, int ranks);

// What one row is about.
struct CollectiveCase {
  std::string memory;
  std::string buffers;
  Op op = Op::barrier;
  std::size_t bytes = 0;

  bool same_table(const CollectiveCase& other) const {
    return memory == other.memory && buffers == other.buffers && op == other.op;
  }
};
// Returns all rows, those of one table in a row. A barrier has no buffers and is there only once.
std::vector<CollectiveCase> cases(const CollectivesBenchOptions& options, int ranks);

void describe(CLI::App& app, CollectivesBenchOptions& options);
// Throws Error(argument). Comm threads are never needed: false.
bool check(CollectivesBenchOptions& options);

}  // namespace ropewalk::bench
