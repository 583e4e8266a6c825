// Options of the overlap benchmark; see options.hpp.
#include "overlap/options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/parse.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/schedule.hpp"

namespace ropewalk::bench {
namespace {

constexpr int dimensions = 4;
constexpr int most_threads = 1024;

const char* const about =
    "The loop of Meadows et al. 2018: comm threads exchange the faces of a 4-d lattice, each its\n"
    "lanes, while the other threads compute the interior, and then join them by work stealing.\n"
    "With 0 comm threads, thread 0 looks after its messages between blocks of the interior.\n"
    "Columns: compute only, exchange only, exchange and then compute, both overlapped; hidden is\n"
    "(compute + exchange - overlapped) / min(compute, exchange): 100 % where the shorter costs\n"
    "nothing. Time is that of the slowest rank, median of the rounds. MB/s: what a rank sends, by\n"
    "the time of the exchange alone, and by that of the overlapped loop.\n"
    "Examples:\n"
    "  ropewalk bench overlap --quick\n"
    "  ropewalk bench overlap -n 4 --threads 8 --comm-threads 0,1,2,4 --mpi-grid 1.1.2.2\n"
    "  ropewalk cluster run --nodes 2 -- ropewalk-bench-overlap --L 16 --strategy concurrent";

}  // namespace

void describe(CLI::App& app, OverlapOptions& options) {
  app.add_option("--L", options.L, "Local lattices L^4 of each rank, as a list; even numbers")
      ->type_name("L,...")
      ->capture_default_str();
  app.add_option("--Ls", options.Ls, "Half spinors a face site, 96 bytes each; computed as often")
      ->type_name("N")
      ->check(CLI::Range(1, 64))
      ->capture_default_str();
  app.add_option("--mpi-grid", options.mpi_grid,
                 "Ranks along each dimension; their product is the number of ranks. Default: all "
                 "ranks in the last")
      ->type_name("X.Y.Z.T");
  app.add_option("--threads", options.threads,
                 "Threads a rank, comm threads among them; default: its share of the cores")
      ->type_name("N")
      ->check(CLI::Range(1, most_threads));
  app.add_option("--comm-threads", options.comm_threads,
                 "Numbers of comm threads, 0 to --threads; default: 0, 1, 2, 4, ...")
      ->type_name("N,...");
  app.add_option("--lanes", options.lanes,
                 "Lanes, shared out among the comm threads; default: the most comm threads")
      ->type_name("N")
      ->check(CLI::Range(1, EndpointSet::max_lanes));
  app.add_option("--strategy", options.strategies,
                 "concurrent: messages; direct: ranks of a node copy; threaded: the library's own "
                 "comm threads; sequential")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_option("--passes", options.passes, "How often the interior is computed an exchange")
      ->type_name("N")
      ->check(CLI::Range(1, 10000))
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
  if (!options.mpi_grid.empty()) {
    options.extents = extents("--mpi-grid", options.mpi_grid, dimensions);
  }
  if (!options.comm_threads.empty()) {
    options.comm_list = integers("--comm-threads", options.comm_threads, 0, most_threads);
  }
  const std::vector<std::string> known = {"sequential", "concurrent", "threaded", "direct"};
  for (const std::string& word : words("--strategy", options.strategies, known)) {
    options.strategy_list.push_back(strategy(word));
  }
  return true;
}

std::vector<int> overlap_grid(const OverlapOptions& options, int ranks) {
  if (ranks == 1) {
    throw Error(ErrorCode::argument,
                "ranks: one rank has no neighbour to exchange with; start at least two: ropewalk "
                "bench overlap -n 2");
  }
  if (options.extents.empty()) return {1, 1, 1, ranks};
  long long product = 1;
  for (const int extent : options.extents) product = std::min(product * extent, 1LL << 31);
  if (product == ranks) return options.extents;
  throw Error(ErrorCode::argument,
              fmt::format("--mpi-grid: {} makes {} ranks, but {} were started; give -n {} or a "
                          "grid whose product is {}, such as 1.1.1.{}",
                          dotted(options.extents), product, ranks, product, ranks, ranks));
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
