// Options of the halo exchange benchmark; see options.hpp.
#include "comms/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <cmath>
#include <cstdlib>

#include "common/pages.hpp"
#include "common/parse.hpp"
#include "common/validators.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr int dimensions = 4;  // x, y, z and t of the lattice codes

double positive(const std::string& option, const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [stop, error] = std::from_chars(text.data(), end, value);
  if (error != std::errc() || stop != end || !std::isfinite(value) || value <= 0) {
    throw Error(
        ErrorCode::argument,
        fmt::format("{}: \"{}\" is neither \"measured\" nor a number of MB/s above 0; write "
                    "for example {} 12500 for 100 Gbit/s",
                    option, text, option));
  }
  return value;
}

void check_lattice(CommsOptions& options) {
  if (options.common.quick && options.L == CommsOptions().L) options.L = "4,8,16,24";
  options.sizes = integers("--L", options.L, 1, 256);
  if (!options.grid.empty()) options.global = extents("--grid", options.grid, dimensions);
  if (!options.mpi_grid.empty()) {
    options.extents = extents("--mpi-grid", options.mpi_grid, dimensions);
  }
}

void describe_buffers(CLI::App& app, CommsOptions& options) {
  app.add_option("--pages", options.pages,
                 "Pages of the buffers: huge, memalign, small, thp or a source such as shmem-huge, "
                 "hugetlb-memfd, anonymous-hugetlb")
      ->type_name("KIND,...")
      ->capture_default_str();
  app.add_option("--memory", options.memory, memory_help)
      ->type_name("PLACE,...")
      ->capture_default_str();
  app.add_option(
         "--buffers", options.buffers,
         "hot: the same buffers every time; cold: a rotation that is larger than the caches")
      ->type_name("NAME,...")
      ->capture_default_str();
}

}  // namespace

void describe(CLI::App& app, CommsOptions& options) {
  app.add_option("--L", options.L, "Local lattices L^4 of each rank, as a list")
      ->type_name("L,...")
      ->capture_default_str();
  app.add_option("--Ls", options.Ls, "Extent of the fifth dimension, which is never divided")
      ->type_name("N")
      ->check(whole_number(1, 1024))
      ->capture_default_str();
  app.add_option("--grid", options.grid,
                 "One global lattice in place of the list of L, divided by --mpi-grid")
      ->type_name("X.Y.Z.T");
  app.add_option(
         "--mpi-grid", options.mpi_grid,
         "Ranks along each dimension; their product is the number of ranks. Only dimensions "
         "above 1 communicate. Default: all ranks in the last")
      ->type_name("X.Y.Z.T");
  app.add_option(
         "--strategy", options.strategies,
         "Who drives the messages: sequential, concurrent, threaded, automatic; direct: none; "
         "plain: the MPI alone, all faces at once on one communicator (shown by default where "
         "ranks are on several nodes)")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_option(
         "--lanes", options.lanes,
         "Comm threads a rank, each with a communicator of its own; 0: ROPEWALK_LANES, else "
         "from the cores left free")
      ->type_name("N")
      ->check(whole_number(0, EndpointSet::max_lanes))
      ->capture_default_str();
  app.add_option("--line-rate", options.line_rate,
                 "What 100 % is, in MB/s one way: a number (12500 for 100 Gbit/s) or measured, the "
                 "rate at which all ranks copy the same bytes at the same time. Default: "
                 "ROPEWALK_LINE_RATE, which `ropewalk cluster` sets, else measured")
      ->type_name("MB/s");
  app.add_option("--iterations", options.iterations,
                 "Exchanges a sample; default: as many as last a few milliseconds")
      ->type_name("N")
      ->check(whole_number(1, 1000000));
  describe_buffers(app, options);
  add_common_options(app, options.common);
  app.footer(
      "Halo exchange of lattice codes (Boyle et al. 2017, section III and tables I-IV): every "
      "rank\n"
      "sends a face of L^3 x Ls half spinors (96 bytes) to both neighbours of each dimension that "
      "is\n"
      "divided, and receives as many. All columns are measured in turn by the same processes.\n"
      "Received data are checked in every round. MB/s are 10^6 bytes/s a rank; bidi = 2 x uni.\n"
      "Examples:\n"
      "  ropewalk run -n 2 -- ropewalk-bench-comms --quick\n"
      "  ropewalk run -n 16 -- ropewalk-bench-comms --mpi-grid 2.2.2.2 --lanes 8 --line-rate "
      "12500\n"
      "  ropewalk run -n 2 -- ropewalk-bench-comms --grid 8.8.8.32 --strategy concurrent "
      "--json comms.json");
}

bool check(CommsOptions& options) {
  check_lattice(options);
  options.kinds = placed(words("--pages", options.pages, page_kinds()), options.memory);
  options.buffer_list = words("--buffers", options.buffers, {"hot", "cold"});
  if (options.common.quick && options.buffers == CommsOptions().buffers) {
    options.buffer_list = {"hot"};
  }
  const std::vector<std::string> known = {"sequential", "concurrent", "threaded",
                                          "automatic",  "direct",     "plain"};
  bool threads = options.lanes > 1;
  for (const std::string& word : words("--strategy", options.strategies, known)) {
    if (word == "plain") {
      options.plain = true;
      continue;
    }
    options.strategy_list.push_back(strategy(word));
    threads = threads || word == "threaded" || word == "automatic";
  }
  const char* box = std::getenv("ROPEWALK_LINE_RATE");
  if (options.line_rate.empty() && box != nullptr) options.line_rate = box;
  if (!options.line_rate.empty() && options.line_rate != "measured") {
    options.line_rate_mb = positive("--line-rate", options.line_rate);
  }
  // The rotation of cold buffers shows nothing on a network of known rate, and takes half the time.
  if (options.line_rate_mb > 0 && options.buffers == CommsOptions().buffers) {
    options.buffer_list = {"hot"};
  }
  return threads;
}

std::vector<int> rank_grid(const CommsOptions& options, int ranks) {
  if (ranks == 1) {
    throw Error(ErrorCode::argument,
                "ranks: one rank has no neighbour to exchange with; start at least two: "
                "ropewalk run -n 2 -- ropewalk-bench-comms");
  }
  if (options.extents.empty()) return {1, 1, 1, ranks};
  long long product = 1;
  for (const int extent : options.extents) product = std::min(product * extent, 1LL << 31);
  if (product != ranks) {
    throw Error(
        ErrorCode::argument,
        fmt::format("--mpi-grid: {} makes {} ranks, but {} were started; give -n {} or a grid "
                    "whose product is {}, such as 1.1.1.{}",
                    dotted(options.extents), product, ranks, product, ranks, ranks));
  }
  return options.extents;
}

std::vector<LocalLattice> lattices(const CommsOptions& options, const std::vector<int>& grid) {
  std::vector<LocalLattice> all;
  if (options.global.empty()) {
    for (const int L : options.sizes) all.push_back({std::vector<int>(dimensions, L), options.Ls});
    return all;
  }
  LocalLattice one{options.global, options.Ls};
  for (int d = 0; d < dimensions; ++d) {
    if (one.local[d] % grid[d] != 0) {
      throw Error(
          ErrorCode::argument,
          fmt::format("--grid: extent {} of {} is not divisible by the {} ranks of that "
                      "dimension; choose a multiple, such as {}",
                      one.local[d], options.grid, grid[d], (one.local[d] / grid[d] + 1) * grid[d]));
    }
    one.local[d] /= grid[d];
  }
  return {one};
}

}  // namespace ropewalk::bench
