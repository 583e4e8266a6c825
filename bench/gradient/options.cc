// Options of the benchmark of gradient reduction; see options.hpp.
#include "gradient/options.hpp"

#include <fmt/format.h>

#include "common/pages.hpp"
#include "common/parse.hpp"
#include "common/validators.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t longest = std::size_t{1} << 28;        // floats, as in the paper's figures
constexpr int most_threads = 64;                             // of a rank
constexpr std::size_t longest_quick = std::size_t{1} << 22;  // 16 MiB

std::vector<std::size_t> default_lengths(bool quick) {
  std::vector<std::size_t> lengths;
  for (std::size_t length = 1; length <= (quick ? longest_quick : longest);
       length *= quick ? 16 : 4) {
    lengths.push_back(length);
  }
  if (quick) lengths.push_back(longest_quick);
  return lengths;
}

// Floats of the vectors that DeepBench (all_reduce_kernels_size) sums, to which Boyle et al. 2017
// refer.
constexpr std::size_t deepbench_lengths[] = {100000,   3097600,  4194304, 6553600,
                                             16777217, 38360000, 64500000};

std::vector<std::size_t> lengths_of(const GradientOptions& options) {
  if (options.lengths.empty()) return default_lengths(options.common.quick);
  if (options.lengths == "deepbench") {
    return {std::begin(deepbench_lengths), std::end(deepbench_lengths)};
  }
  return byte_list("--lengths", options.lengths);
}

}  // namespace

const std::vector<std::string>& variant_names() {
  static const std::vector<std::string> names = {"published", "improved", "ropewalk", "mpi"};
  return names;
}

void describe(CLI::App& app, GradientOptions& options) {
  app.add_option("--lengths", options.lengths,
                 "Floats of the vector, as a list, with K, M, G as powers of 1024, or "
                 "`deepbench`, the lengths of that suite; default 1, 4, 16, ..., 256M as far as "
                 "memory allows")
      ->type_name("N,...|deepbench");
  app.add_option("--variants", options.variants, "Which to measure, as a list")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_option(
         "--threads", options.threads,
         "Threads of a rank for `improved`, each with a communicator of its own, as a list; "
         "default: the cores of a rank, at most 8")
      ->type_name("N,...");
  app.add_option("--pages", options.pages,
                 "Pages under the buffers of `improved`, as a list: huge, small, memalign, thp "
                 "or a mechanism")
      ->type_name("KIND,...")
      ->capture_default_str();
  app.add_option("--memory", options.memory, memory_help)
      ->type_name("PLACE,...")
      ->capture_default_str();
  add_common_options(app, options.common);
  app.footer(
      "Reduction of a large vector over all ranks (float, sum), as section IV of Boyle et al. "
      "2017\n"
      "measures it. published: a ring as they found it, fresh buffers every call, one thread,\n"
      "blocking segments, no overlap. improved: as they left it, with buffers that are kept and "
      "lie\n"
      "on huge pages, threads that send on duplicated communicators, and threads that copy and "
      "add.\n"
      "ropewalk: a ReductionPlan. mpi: MPI_Allreduce. All in turn in the same processes; results\n"
      "are checked. Over several nodes ROPEWALK_LINE_RATE (MB/s of a node, one way) gives the "
      "limit.\n"
      "Examples:\n"
      "  ropewalk bench gradient --quick\n"
      "  ropewalk bench gradient -n 2 --variants improved --pages huge,small --threads 1,2\n"
      "  ropewalk bench gradient -n 2 --json gradient.json --plot gradient.svg");
}

bool check(GradientOptions& options) {
  options.length_list = lengths_of(options);
  for (const std::size_t length : options.length_list) {
    if (length <= longest) continue;
    throw Error(ErrorCode::argument, fmt::format("--lengths: {} floats, expected at most 256M; "
                                                 "write for example --lengths 1K,1M,64M",
                                                 length));
  }
  options.variant_list = words("--variants", options.variants, variant_names());
  if (!options.threads.empty()) {
    options.thread_list = integers("--threads", options.threads, 1, most_threads);
  }
  options.page_list = placed(words("--pages", options.pages, page_kinds()), options.memory);
  options.line_rate = line_rate_of_environment() * 1e6;
  return true;
}

}  // namespace ropewalk::bench
