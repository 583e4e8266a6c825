#include "fft/options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/parse.hpp"
#include "common/rank_grid.hpp"
#include "common/validators.hpp"
#include "ropewalk/collectively.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr int most_cells = 4096;  // along an axis
// MPI's calls count the doubles of an array with an int.
constexpr std::size_t most_volume = std::size_t{1} << 30;

const char* const about =
    "A step is a transform of the whole grid and its inverse. Lines along the axis that is whole\n"
    "on every rank are transformed by --library; then the array is transposed, so that another\n"
    "axis is whole. All ways do so alike, and differ in how they transpose.\n"
    "Decompositions:\n"
    "  slab    one axis is divided; one transpose a transform\n"
    "  pencil  two axes are divided, as --mpi-grid says; two transposes\n"
    "Ways:\n"
    "  alltoallw    MPI_Alltoallw of subarrays\n"
    "  packed       MPI_Alltoall of buffers that the rank packs and unpacks itself, or\n"
    "               MPI_Alltoallv where the grid cannot be divided evenly\n"
    "  collectives  the same by ropewalk's Collectives\n"
    "  exchange     ropewalk's SubarrayExchange\n"
    "Columns: microseconds of a step, median of the rounds, slowest rank: all of it, and the\n"
    "shares of transposes and local transforms; ratios: the time of MPI's fastest way over this\n"
    "one's. In every round the transform of a plane wave is checked, and what comes back;\n"
    "before that, that of random numbers is compared with a serial one (up to 2^21 cells).\n"
    "Examples:\n"
    "  ropewalk bench fft --quick\n"
    "  ropewalk bench fft -n 4 --grids 128.96.100 --decomposition pencil --json fft.json";

Triple grid_of(const std::string& word) {
  const std::vector<int> found = extents("--grids", word, 0);
  if (found.size() == 1) return {found[0], found[0], found[0]};
  if (found.size() == 3) return {found[0], found[1], found[2]};
  throw Error(
      ErrorCode::argument,
      fmt::format("--grids: \"{}\", expected one number of cells or three; write for example "
                  "--grids 64 or --grids 64.48.100",
                  word));
}

void check_size(const Triple& grid) {
  if (*std::ranges::max_element(grid) <= most_cells && volume(grid) <= most_volume) return;
  throw Error(
      ErrorCode::argument,
      fmt::format("--grids: {}.{}.{}, expected at most {} cells along an axis and {} in all; "
                  "write for example --grids 256",
                  grid[0], grid[1], grid[2], most_cells, most_volume));
}

void check_ranks(const FftCase& one) {
  const int along_first = std::min(one.cells[0], one.cells[1]);
  const int last = one.is_real ? one.cells[2] / 2 + 1 : one.cells[2];
  if (one.ranks[0] <= along_first && one.ranks[1] <= std::min(one.cells[1], last)) return;
  throw CollectiveError(
      ErrorCode::argument,
      fmt::format("--grids: {}.{}.{} cannot be divided among {}.{} ranks, since one would have no "
                  "cells; give larger grids or fewer ranks",
                  one.cells[0], one.cells[1], one.cells[2], one.ranks[0], one.ranks[1]));
}

}  // namespace

void describe(CLI::App& app, FftOptions& options) {
  app.add_option("--grids", options.grids, "Cells along each axis, or along all alike")
      ->type_name("N|X.Y.Z,...")
      ->capture_default_str();
  app.add_option("--decomposition", options.decomposition, "How the grid is divided: see below")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_option("--mpi-grid", options.mpi_grid,
                 "Ranks along the two divided axes of pencils; their product is the number of "
                 "ranks. Default: as square as can be")
      ->type_name("X.Y");
  app.add_option("--ways", options.ways, "How arrays are transposed: see below")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_option("--numbers", options.numbers,
                 "What is transformed: complex numbers, or real ones to half as many complex ones")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_option("--library", options.library,
                 "What transforms lines: kissfft, or a library on this machine that has the "
                 "interface of FFTW 3, as libfftw3.so.3 or libmkl_rt.so.2")
      ->type_name("NAME|FILE")
      ->capture_default_str();
  app.add_option("--threads", options.threads, "Threads of a rank, for the local transforms")
      ->check(CLI::Range(1, 256))
      ->capture_default_str();
  add_common_options(app, options.common);
  app.footer(about);
}

void check(FftOptions& options) {
  if (options.common.quick && options.grids == FftOptions().grids) options.grids = "32,64";
  for (const std::string& word : split(options.grids, ',')) {
    options.grid_list.push_back(grid_of(word));
    check_size(options.grid_list.back());
  }
  options.decomposition_list = words("--decomposition", options.decomposition, {"slab", "pencil"});
  if (!options.mpi_grid.empty()) options.extents = extents("--mpi-grid", options.mpi_grid, 2);
  options.way_list = words("--ways", options.ways, fft_way_names());
  options.number_list = words("--numbers", options.numbers, {"complex", "real"});
}

std::array<int, 2> fft_rank_grid(const FftOptions& options, const std::string& decomposition,
                                 int ranks) {
  if (decomposition == "slab") return {ranks, 1};
  const std::vector<int> grid = rank_grid(options.extents, ranks, 2);
  // The longer side divides the last axes, whose transposes come first.
  if (options.extents.empty()) return {grid[1], grid[0]};
  return {grid[0], grid[1]};
}

std::vector<FftCase> fft_cases(const FftOptions& options, int ranks) {
  std::vector<FftCase> all;
  for (const std::string& numbers : options.number_list) {
    for (const std::string& decomposition : options.decomposition_list) {
      for (const Triple& grid : options.grid_list) {
        all.push_back({grid, fft_rank_grid(options, decomposition, ranks), numbers == "real"});
        check_ranks(all.back());
      }
    }
  }
  return all;
}

}  // namespace ropewalk::bench
