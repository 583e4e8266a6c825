#include "stencil/options.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/parse.hpp"
#include "common/validators.hpp"
#include "ropewalk/error.hpp"
#include "stencil/ways.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t least_face = 128;  // bytes: an edge of 4, so that there is an interior
constexpr std::size_t largest_face = std::size_t{8} << 20;  // 8 GiB a block and its results

const char* const about =
    "Each rank has a cube of doubles with one layer of ghosts, in a grid of ranks in three\n"
    "dimensions: up to six neighbours. A face is a message of the given size.\n"
    "Ways:\n"
    "  isend               MPI_Isend and MPI_Irecv of subarrays\n"
    "  packed              of buffers that the rank packs and unpacks itself\n"
    "  neighbor_alltoallw  MPI_Neighbor_alltoallw of subarrays; overlapped: nonblocking\n"
    "  direct, concurrent, automatic   strategies of ropewalk's Halo\n"
    "Computing:\n"
    "  none        ghosts are filled, nothing else\n"
    "  blocking    ghosts are filled, then the seven-point stencil is applied to all cells\n"
    "  overlapped  cells that need no ghosts are computed while the ghosts are under way\n"
    "Columns: microseconds of a step, median of the rounds, slowest rank; ratio: the time of\n"
    "MPI's fastest way over that of ropewalk's. Ghosts and results are checked in every round.\n"
    "Examples:\n"
    "  ropewalk bench stencil --quick\n"
    "  ropewalk bench stencil -n 8 --mpi-grid 2.2.2 --sizes 64K --json stencil.json\n"
    "  ropewalk bench stencil --memory arena,private --ways isend,direct\n"
    "  ropewalk bench stencil -n 1 --periodic --threads 2 --ways packed,direct";

}  // namespace

const std::vector<std::string>& computing_names() {
  static const std::vector<std::string> names = {"none", "blocking", "overlapped"};
  return names;
}
const std::string& name(Computing computing) {
  return computing_names()[static_cast<std::size_t>(computing)];
}

void describe(CLI::App& app, StencilOptions& options) {
  app.add_option("--sizes", options.sizes, "Bytes of a face, 128 to 8M")
      ->type_name("BYTES,...")
      ->capture_default_str();
  app.add_option("--mpi-grid", options.mpi_grid,
                 "Ranks along each dimension; their product is the number of ranks. Default: as "
                 "cubic as can be")
      ->type_name("X.Y.Z");
  app.add_option("--ways", options.ways, "How ghosts are filled: see below")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_option("--computing", options.computing, "What is computed, and when: see below")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_option("--memory", options.memory,
                 "arena: cubes that the other ranks map; private: memory of libc")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_option("--threads", options.threads,
                 "Threads of each rank: they share the copies of a Halo (workers), and what is "
                 "computed; MPI's ways are called by one of them")
      ->type_name("N")
      ->check(whole_number(1, Halo::max_workers))
      ->capture_default_str();
  app.add_flag("--periodic", options.periodic,
               "Periods in all dimensions: each rank has six neighbours, which may be itself");
  add_common_options(app, options.common);
  app.footer(about);
}

bool check(StencilOptions& options) {
  if (options.common.quick && options.sizes == StencilOptions().sizes) options.sizes = "4K,64K";
  options.size_list = byte_list("--sizes", options.sizes);
  for (const std::size_t size : options.size_list) {
    if (size >= least_face && size <= largest_face) continue;
    throw Error(ErrorCode::argument,
                fmt::format("--sizes: {} bytes, expected 128 to 8M; write for example --sizes "
                            "4K,64K,1M",
                            size));
  }
  if (!options.mpi_grid.empty()) options.extents = extents("--mpi-grid", options.mpi_grid, 3);
  options.way_list = words("--ways", options.ways, stencil_way_names());
  options.memory_list = words("--memory", options.memory, {"arena", "private"});
  for (const std::string& word : words("--computing", options.computing, computing_names())) {
    const auto at = std::ranges::find(computing_names(), word) - computing_names().begin();
    options.computing_list.push_back(static_cast<Computing>(at));
  }
  return false;
}

int edge_of(std::size_t face_bytes) {
  return static_cast<int>(std::lround(std::sqrt(static_cast<double>(face_bytes) / sizeof(double))));
}

}  // namespace ropewalk::bench
