// The memory and stencil tables of the report.
#pragma once

#include <string>
#include <vector>

#include "common/budget.hpp"
#include "common/pages.hpp"
#include "common/ranks.hpp"
#include "common/report.hpp"
#include "common/statistics.hpp"
#include "comms/steps.hpp"
#include "itt/options.hpp"
#include "ropewalk/schedule.hpp"

namespace ropewalk::bench {

// z = a x + y over 8 numbers a site of L^4 a rank.
struct MemoryResult {
  int L = 0;
  double bytes =
      0;  // of a pass, all ranks: 3 vol 8 sizeof(Real); lines read for writing not counted
  double flops = 0;  // 2 vol 8
  int passes = 0;
  Summary us;  // of a pass, slowest rank; a sample has many
  bool verified = true;

  double seconds() const { return us.mean * passes / 1e6; }
};
double memory_bytes(int L, int ranks, bool doubles);
double memory_flops(int L, int ranks);

// Returns the sizes of the memory table, without those for which a node has no room; collective.
std::vector<int> memory_sizes(const IttOptions& options, const Ranks& ranks);
// Collective. Each size is a part of the budget, which takes what expected_memory() says.
std::vector<MemoryResult> measure_memory(const IttOptions& options, const Ranks& ranks,
                                         const std::vector<int>& sizes, ThreadTeam& team,
                                         Budget& budget, Report& report, Share share);
Expected expected_memory(const IttOptions& options, int L);

// Faces of L^3 Ls half spinors (96 bytes), in both directions of each divided dimension.
struct StencilResult {
  int L = 0;
  int Ls = 8;
  std::size_t bytes = 0;  // of a message
  double node_bytes = 0;  // that the ranks of a node send in an exchange
  std::string strategy;   // chosen
  Summary us;             // of single exchanges, slowest rank each
  Summary plain_us;       // the same by MPI_Isend and MPI_Irecv of one thread
  Summary limit_us;       // one copy from send to receive buffers by all ranks at once, the fastest
  StepResult step;        // with faces gathered before and read after
  bool verified = true;
  std::string wrong;
};

std::vector<int> stencil_sizes(const IttOptions& options);
// Collective; several ranks. Each size is a part of the budget, too.
std::vector<StencilResult> measure_stencil(const IttOptions& options, const IttLayout& layout,
                                           const Ranks& ranks, Budget& budget, Report& report,
                                           Share share, BackingReport& pages);
Expected expected_stencil(const IttOptions& options, int L);

}  // namespace ropewalk::bench
