#include "amr/options.hpp"

#include <fmt/format.h>

#include "common/parse.hpp"
#include "common/validators.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t most_cells = 32;  // along an edge: 2 GiB in a mesh of 16 blocks an edge

const char* const about =
    "A cube of blocks, of which those on the surface of a moving sphere are refined, is dealt to\n"
    "the ranks. In each step every face of a block that belongs to another rank is a message, all\n"
    "cells are computed, and their sum is reduced. After some steps the mesh changes, blocks move\n"
    "to other ranks, and the neighbours of a rank are others.\n"
    "Ways:\n"
    "  isend    MPI_Isend, MPI_Irecv and MPI_Allreduce\n"
    "  channel  ropewalk's Channel and Collectives\n"
    "Columns: microseconds of a step, median of the rounds, slowest rank: all of it, and the\n"
    "shares of communication and of reductions; ratio: the communication by ropewalk over that by\n"
    "MPI. All ways must have the same sum of all cells.\n"
    "Examples:\n"
    "  ropewalk bench amr --quick\n"
    "  ropewalk bench amr -n 4 --cells 8 --blocks 6 --json amr.json";

}  // namespace

void describe(CLI::App& app, AmrOptions& options) {
  app.add_option("--cells", options.cells, "Cells along the edge of a block, even, 2 to 32")
      ->type_name("N,...")
      ->capture_default_str();
  app.add_option("--blocks", options.edge, "Coarse blocks along the edge of the cube")
      ->check(CLI::Range(2, 16))
      ->capture_default_str();
  app.add_option("--meshes", options.meshes, "Meshes, one after the other")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  app.add_option("--steps", options.steps, "Steps with each mesh")
      ->check(CLI::Range(1, 1000))
      ->capture_default_str();
  add_common_options(app, options.common);
  app.footer(about);
}

bool check(AmrOptions& options) {
  for (const std::size_t cells : byte_list("--cells", options.cells)) {
    if (cells < 2 || cells > most_cells || cells % 2 != 0) {
      throw Error(ErrorCode::argument,
                  fmt::format("--cells: {}, expected even numbers from 2 to {}; write for example "
                              "--cells 4,8,16",
                              cells, most_cells));
    }
    options.cell_list.push_back(static_cast<int>(cells));
  }
  return false;
}

}  // namespace ropewalk::bench
