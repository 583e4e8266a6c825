// Options of the overlap benchmark; see options.hpp.
#include "overlap/options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/parse.hpp"
#include "common/validators.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/schedule.hpp"

namespace ropewalk::bench {
namespace {

constexpr int dimensions = 4;
constexpr int most_threads = 1024;

const char* const about =
    "The loop of Meadows et al. 2018 on the operators of lattice/: comm threads exchange the "
    "faces,\n"
    "each its lanes, while the other threads compute, and then join them by work stealing. With 0\n"
    "comm threads, thread 0 looks after its messages between rows of sites.\n"
    "A first table for each operator and L, in microseconds of a hop:\n"
    "  compute          all sites, no exchange\n"
    "  exchange         faces projected and exchanged, no sites\n"
    "  one after other  the exchange, then the computation\n"
    "  overlapped       both at once; waits: of these, for faces when nothing is left to compute\n"
    "  regions          overlapped by threads of OpenMP, a parallel region for each phase: faces\n"
    "                   projected, sites that need no other rank, the others; messages by the\n"
    "                   caller; - where the compiler has no OpenMP\n"
    "  limit            the longer of compute and exchange: overlapped cannot be less\n"
    "  hidden           (compute + exchange - overlapped) / min(compute, exchange): 100 % where\n"
    "                   the shorter of the two costs nothing\n"
    "  of it CPU        the part of an exchange in which the core is not free for anything else,\n"
    "                   since it projects faces, drives messages, or runs TCP\n"
    "  of hideable      the same of what is left of the exchange then\n"
    "  gain             one after other / overlapped\n"
    "A second one, in MB/s (10^6) that a rank sends: by the time of the exchange alone and by "
    "that\n"
    "of the overlapped hop; and weak scaling: how many times one rank alone, on an undivided\n"
    "lattice, all ranks reach, each with as much. What it can reach is measured, too: all of them\n"
    "at once without an exchange.\n"
    "Times are those of the slowest rank, medians of the rounds, all cases in turn; results are\n"
    "checked against sums written out.\n"
    "\n"
    "A progress line says how long it will still be.\n"
    "Examples:\n"
    "  ropewalk bench overlap --quick\n"
    "  ropewalk bench overlap -n 2 --operator wilson-eo,mult --L 8\n"
    "  ropewalk bench overlap -n 2 --mpi-grid 1.1.1.2,2.1.1.1 --L 8,12,16,24\n"
    "  ropewalk bench overlap --layouts 4x1,2x2,1x4 --volume node --plot overlap.svg\n"
    "  ropewalk cluster --nodes 2 -- ropewalk bench overlap -n 2 --strategy concurrent";

}  // namespace

void describe(CLI::App& app, OverlapOptions& options) {
  app.add_option("--operator", options.operators,
                 "wilson, wilson-eo (onto even sites), dwf, dwf-eo (domain wall, --Ls slices), "
                 "mult (Meadows' own: the inverse clover term times the hop onto even sites)")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_option("--L", options.L, "Lattices L^4 of each rank, or node; even numbers")
      ->type_name("L,...")
      ->capture_default_str();
  app.add_option("--volume", options.volume,
                 "Whose L^4: of a rank; of a node, divided by its ranks")
      ->type_name("rank|node")
      ->check(one_of({"rank", "node"}))
      ->capture_default_str();
  app.add_option("--Ls", options.Ls, "Fifth extent of the domain-wall operators")
      ->type_name("N")
      ->check(whole_number(2, 256))
      ->capture_default_str();
  app.add_option("--precision", options.precision, "single or double")
      ->type_name("NAME")
      ->check(one_of({"single", "double"}))
      ->capture_default_str();
  app.add_option("--mpi-grid", options.mpi_grids,
                 "Ranks along each dimension, several grids in turn; the product is the number of "
                 "ranks. Default: all ranks in the last")
      ->type_name("X.Y.Z.T,...");
  app.add_option("--threads", options.threads,
                 "Threads a rank, comm threads among them; default: its share of the cores")
      ->type_name("N")
      ->check(whole_number(1, most_threads));
  app.add_option("--comm-threads", options.comm_threads,
                 "Numbers of comm threads, 0 to --threads; default: 0, 1, 2, 4, ...")
      ->type_name("N,...");
  app.add_option("--lanes", options.lanes,
                 "Lanes, shared out among the comm threads; default: the most comm threads")
      ->type_name("N")
      ->check(whole_number(1, EndpointSet::max_lanes));
  app.add_option("--strategy", options.strategies,
                 "concurrent: messages; direct: ranks of a node copy; put: they write faces where "
                 "they are read; threaded: the library's own comm threads; sequential; automatic")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_option("--faces", options.faces,
                 "Numbers in which faces travel: full, half (16 bits), cases of each")
      ->type_name("NAME,...")
      ->capture_default_str();
  add_common_options(app, options.common);
  app.footer(about);
}

bool check(OverlapOptions& options) {
  if (options.common.quick && options.L == OverlapOptions().L) options.L = "8";
  options.sizes = integers("--L", options.L, 2, 128);
  for (const int L : options.sizes) {
    if (L % 2 == 0) continue;
    throw Error(ErrorCode::argument,
                fmt::format("--L: {}, expected even numbers; write {}", L, L + 1));
  }
  options.operator_list =
      words("--operator", options.operators, {"wilson", "wilson-eo", "dwf", "dwf-eo", "mult"});
  if (!options.mpi_grids.empty()) {
    for (const std::string& one : split(options.mpi_grids, ',')) {
      options.grids.push_back(extents("--mpi-grid", one, dimensions));
    }
  }
  if (!options.comm_threads.empty()) {
    options.comm_list = integers("--comm-threads", options.comm_threads, 0, most_threads);
  }
  const std::vector<std::string> known = {"sequential", "concurrent", "threaded",
                                          "direct",     "put",        "automatic"};
  for (const std::string& word : words("--strategy", options.strategies, known)) {
    options.strategy_list.push_back(strategy(word));
  }
  for (const std::string& word : words("--faces", options.faces, {"full", "half"})) {
    options.faces_list.push_back(lattice::face_precision(word));
  }
  return true;
}

std::vector<IttLayout> overlap_layouts(const OverlapOptions& options, int ranks,
                                       int ranks_per_node) {
  if (ranks == 1) {
    throw Error(ErrorCode::argument,
                "ranks: one rank has no neighbour to exchange with; start at least two: ropewalk "
                "bench overlap -n 2");
  }
  std::vector<std::vector<int>> grids = options.grids;
  if (grids.empty()) grids.push_back({1, 1, 1, ranks});
  std::vector<IttLayout> made;
  for (const std::vector<int>& grid : grids) {
    IttOptions like;
    like.extents = grid;
    like.mpi_grid = dotted(grid);
    like.volume = options.volume;
    made.push_back(itt_layout(like, ranks, ranks_per_node));
    for (const int L : options.sizes) made.back().local(L);
  }
  return made;
}

std::vector<int> comm_threads(const OverlapOptions& options, int threads) {
  if (options.comm_list.empty()) {
    std::vector<int> made = {0};
    for (int count = 1; count < threads; count *= 2) made.push_back(count);
    return made;
  }
  for (const int count : options.comm_list) {
    if (count <= threads) continue;
    throw Error(ErrorCode::argument,
                fmt::format("--comm-threads: {}, expected 0 to the {} threads of a rank; give "
                            "--threads {} or fewer comm threads",
                            count, threads, count));
  }
  return options.comm_list;
}

}  // namespace ropewalk::bench
