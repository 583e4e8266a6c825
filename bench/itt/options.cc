// Options of the ITT benchmark; see options.hpp.
#include "itt/options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/parse.hpp"
#include "common/validators.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

const char* const about =
    "What is printed, in this order:\n"
    "  Roofline  Arithmetic peak, and bandwidth of each cache and of memory, measured now.\n"
    "  Memory    a*x + y on 8 numbers a site of L^4 a rank: two arrays read and one written\n"
    "            (24 bytes a number in double precision); memory moves a third more, for it reads\n"
    "            the lines that are written.\n"
    "            `seconds`: of all passes.\n"
    "  Comms     With two ranks or more. Each rank sends L^3 x 8 half spinors (96 bytes each) to\n"
    "            both neighbours in each divided dimension. `uni`: MB/s (10^6) that a node sends,\n"
    "            `bidi`: sends and receives; mean, its error, least and most of single exchanges.\n"
    "            Below: medians, the strategy chosen, and MPI's own messages on the same buffers;\n"
    "            then whole steps, faces gathered, exchanged and read, by MPI, `direct` and "
    "`put`.\n"
    "  Summary   Mflop/s per node of the hopping term onto even sites: Wilson (Ls=1), DWF4\n"
    "            (domain wall, vectors over sub-lattices), DWF5 (vectors over the fifth "
    "dimension),\n"
    "            1344 flops a site and s-slice, the best case. Cases: links whole or two rows of\n"
    "            three; faces exchanged before the computation or while it goes on.\n"
    "            The comparison point is half of DWF4 at L=16 and at L=12; its robustness is the\n"
    "            worst case at L=16 over the best.\n"
    "  Operators Tables V and VI of Boyle et al. 2017: D_w and its s-vectorised form, whole and\n"
    "            even-odd, for 12^4, 16^4, 24^4 of a node; Wilson, and MULT of CCS-QCD (inverse\n"
    "            clover term times hop, 1896 flops a site), one field and --fields at once, which\n"
    "            share links and clover terms.\n"
    "Every case of every operator is listed with flops per byte (all read once, the result "
    "written\n"
    "once), the bytes it goes through (MiB a rank), the level that these come from, and the roof:\n"
    "the lesser of the peak and of flops per byte times the bandwidth measured for as many bytes.\n"
    "% is the share of it that the median reaches. Results are checked at sites of every rank,\n"
    "corners above all, against sums written out; wrong ones end the program with status 1.\n"
    "\n"
    "A progress line says how long it will still be.\n"
    "Examples:\n"
    "  ropewalk bench itt --quick\n"
    "  ropewalk bench itt -n 2 --mpi-grid 1.1.1.2 --threads 1 --precision double --json itt.json\n"
    "  ropewalk bench itt -n 1 --tables summary --plot itt.svg\n"
    "  ropewalk run -n 16 -- ropewalk-bench-itt --mpi-grid 2.2.2.2 --lanes 4\n"
    "A command line of Grid's Benchmark_ITT works as it is, but for --mpi under `ropewalk bench`,\n"
    "where it names the MPI: write --mpi-grid there.";

std::string grid_text(const lattice::Extents& extents) { return lattice::text(extents); }

// Deals the factors of the ranks of a node, largest first, to dimensions of the grid that have
// them, x first, as Grid divides a node: 2.1.1.1, 2.2.1.1, 2.2.2.1 where the grid allows it.
lattice::Extents block_of(const lattice::Extents& grid, int ranks_per_node) {
  lattice::Extents block{1, 1, 1, 1};
  int left = ranks_per_node;
  for (int factor = ranks_per_node; factor >= 2; --factor) {
    const bool prime = [&] {
      for (int d = 2; d * d <= factor; ++d) {
        if (factor % d == 0) return false;
      }
      return true;
    }();
    bool found = true;
    while (prime && found && left % factor == 0) {
      found = false;
      std::size_t best = 4;
      for (std::size_t d = 0; d < 4; ++d) {
        if ((grid[d] / block[d]) % factor != 0) continue;
        if (best == 4 || block[d] < block[best]) best = d;
      }
      if (best == 4) break;
      block[best] *= factor;
      left /= factor;
      found = true;
    }
  }
  if (left == 1) return block;
  throw Error(
      ErrorCode::argument,
      fmt::format("--mpi-grid: the {} ranks of a node are no block of {}; give a grid whose "
                  "extents have their factors, or --volume rank",
                  ranks_per_node, grid_text(grid)));
}

}  // namespace

bool IttOptions::wants(const std::string& table) const {
  return std::find(table_list.begin(), table_list.end(), table) != table_list.end();
}

void describe(CLI::App& app, IttOptions& options) {
  app.add_option("--L", options.L, "Lattices L^4 of each node, or rank; even numbers")
      ->type_name("L,...")
      ->capture_default_str();
  app.add_option("--volume", options.volume,
                 "Whose L^4: of a node, divided by its ranks, as Grid did until 2019; of a rank")
      ->type_name("node|rank")
      ->check(one_of({"node", "rank"}))
      ->capture_default_str();
  app.add_option("--Ls", options.Ls, "Fifth extent of the domain-wall operators")
      ->type_name("N")
      ->check(whole_number(2, 256))
      ->capture_default_str();
  app.add_option("--mpi-grid,--mpi", options.mpi_grid,
                 "Ranks along x, y, z, t; their product is the number of ranks. Default: the "
                 "divisions with the smallest faces")
      ->type_name("M.N.P.Q");
  app.add_option("--shm", options.shm,
                 "Most memory for messages a rank, in MB, as Grid's option; 0: what they need")
      ->type_name("MB")
      ->check(whole_number(0, 1 << 20));
  app.add_option("--threads", options.threads, "Threads a rank; default: its share of the cores")
      ->type_name("N")
      ->check(whole_number(1, 1024));
  app.add_option("--lanes", options.lanes, "Lanes of a rank, each with a comm thread if above 1")
      ->type_name("N")
      ->check(whole_number(1, EndpointSet::max_lanes))
      ->capture_default_str();
  app.add_option("--precision", options.precision, "single or double")
      ->type_name("NAME")
      ->check(one_of({"single", "double"}))
      ->capture_default_str();
  app.add_option("--exchange", options.exchanges,
                 "Cases to compare: sequential (exchange, then compute), overlap")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_option("--faces", options.faces,
                 "Numbers in which faces travel: full, half (16 bits; cases ending in /half)")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_option("--fields", options.fields, "Fields at once in the row of several of them")
      ->type_name("N")
      ->check(whole_number(2, 64))
      ->capture_default_str();
  app.add_flag("--shm-hugetlb,--shm-hugepages", options.huge,
               "Accepted as Grid's option; messages lie on pages of 2 MiB in any case");
  app.add_option("--tables", options.tables, "What to measure: memory, comms, summary, operators")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_option("--calls", options.calls,
                 "Timed calls of each operator; default: about half a "
                 "second of them, at most 1000")
      ->type_name("N")
      ->check(whole_number(1, 100000));
  add_common_options(app, options.common);
  app.footer(about);
}

bool check(IttOptions& options) {
  options.default_sizes = options.L == IttOptions().L;
  if (options.common.quick && options.default_sizes) options.L = "8,12";
  options.sizes = integers("--L", options.L, 2, 64);
  for (const int L : options.sizes) {
    if (L % 2 == 0) continue;
    throw Error(ErrorCode::argument,
                fmt::format("--L: {}, expected even numbers, which have as many even sites as odd "
                            "ones; write {}",
                            L, L + 1));
  }
  if (!options.mpi_grid.empty()) options.extents = extents("--mpi-grid", options.mpi_grid, 4);
  for (const std::string& word :
       words("--exchange", options.exchanges, {"sequential", "overlap"})) {
    options.exchange_list.push_back(lattice::exchange_mode(word));
  }
  for (const std::string& word : words("--faces", options.faces, {"full", "half"})) {
    options.faces_list.push_back(lattice::face_precision(word));
  }
  options.table_list =
      words("--tables", options.tables, {"memory", "comms", "summary", "operators"});
  return options.lanes > 1;
}

lattice::Extents IttLayout::local(int L) const {
  lattice::Extents made{};
  for (std::size_t d = 0; d < 4; ++d) {
    const int parts = per_node ? in_node[d] : 1;
    made[d] = L / parts;
    if (L % parts == 0 && made[d] % 2 == 0) continue;
    throw Error(ErrorCode::argument,
                fmt::format("--L: {} cannot be divided by the {} ranks of a node in dimension {} "
                            "({} of the ranks are a node) so that even numbers of sites are left; "
                            "give a multiple of {}, another --mpi-grid or --volume rank",
                            L, parts, "xyzt"[d], grid_text(in_node), 2 * parts));
  }
  return made;
}

lattice::Extents IttLayout::global(int L) const {
  lattice::Extents made = local(L);
  for (std::size_t d = 0; d < 4; ++d) made[d] *= rank_grid[d];
  return made;
}

namespace {

// Returns the lattices that can be divided; the others get a note. Where none can, the refusal of
// the first one is thrown.
std::vector<int> divisible(IttLayout& layout, const std::vector<int>& sizes) {
  std::vector<int> found;
  for (const int L : sizes) {
    try {
      layout.local(L);
      found.push_back(L);
    } catch (const Error& error) {
      layout.notes.emplace_back(error.what());
    }
  }
  if (found.empty()) layout.local(sizes.front());
  return found;
}

void choose_sizes(const IttOptions& options, IttLayout& layout) {
  if (options.wants("summary") && options.default_sizes) {
    layout.sizes = divisible(layout, options.sizes);
  } else if (options.wants("summary")) {
    layout.sizes = options.sizes;
    for (const int L : layout.sizes) layout.local(L);
  }
  if (!options.wants("operators")) return;
  layout.volumes =
      divisible(layout, options.common.quick ? std::vector{8, 12} : std::vector{12, 16, 24});
}

}  // namespace

IttLayout itt_layout(const IttOptions& options, int ranks, int ranks_per_node) {
  IttLayout made;
  made.ranks = ranks;
  made.ranks_per_node = ranks_per_node;
  made.per_node = options.volume == "node";
  if (options.extents.empty()) {
    // This grid suits a lattice that any number of ranks divides.
    made.rank_grid = lattice::choose_rank_grid({2 * ranks, 2 * ranks, 2 * ranks, 2 * ranks}, ranks);
  } else {
    std::copy(options.extents.begin(), options.extents.end(), made.rank_grid.begin());
    long long product = 1;
    for (const int extent : made.rank_grid) product = std::min(product * extent, 1LL << 31);
    if (product != ranks) {
      throw Error(ErrorCode::argument,
                  fmt::format("--mpi-grid: {} makes {} ranks, but {} were started; give -n {} or a "
                              "grid whose product is {}, such as {}",
                              options.mpi_grid, product, ranks, product, ranks,
                              grid_text(lattice::choose_rank_grid(
                                  {2 * ranks, 2 * ranks, 2 * ranks, 2 * ranks}, ranks))));
    }
  }
  if (ranks % ranks_per_node != 0) {
    throw Error(ErrorCode::argument,
                fmt::format("ranks: {} ranks, but {} on the first node, expected as many on each; "
                            "start a multiple of {}",
                            ranks, ranks_per_node, ranks_per_node));
  }
  if (made.per_node) made.in_node = block_of(made.rank_grid, ranks_per_node);
  choose_sizes(options, made);
  return made;
}

}  // namespace ropewalk::bench
