// Options of the benchmark of attaching memory; see options.hpp.
#include "attach/options.hpp"

#include <fmt/format.h>

#include <CLI/CLI.hpp>
#include <algorithm>

#include "common/parse.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t largest = std::size_t{256} << 20;
constexpr std::size_t most_entries = 32768;  // as ROPEWALK_REGISTRATIONS

const char* const about =
    "Each rank copies from the memory of the next one on the node, all of them at once.\n"
    "Tables:\n"
    "  steps       make, attach, first touch, copy and detach of one transfer by size; with the\n"
    "              cache only the look-up and the copy are left. Mechanisms: mapped (a memfd that\n"
    "              both map) and cma (process_vm_readv, which has nothing to attach)\n"
    "  contention  process_vm_readv by one rank alone, by all others from rank 0 at once\n"
    "              (one-to-all), and by each rank from the next (all-to-all)\n"
    "  replay      hits, misses and evictions of recorded traces (--traces) in registration\n"
    "              caches of --entries entries, by the order of eviction\n"
    "Programs record traces under ROPEWALK_REGISTRATION_TRACE=FILE.\n"
    "Examples:\n"
    "  ropewalk bench attach --quick\n"
    "  ropewalk bench attach -n 4 --tables contention\n"
    "  ropewalk bench attach --tables replay --traces bench/attach/traces/halo.txt";

void check_entries(AttachOptions& options) {
  for (const std::string& word : split(options.capacities, ',')) {
    options.capacity_list.push_back(bytes("--entries", word));
    if (options.capacity_list.back() <= most_entries) continue;
    throw Error(ErrorCode::argument,
                fmt::format("--entries: {}, expected up to {}; write for example --entries 64,4096",
                            word, most_entries));
  }
}

void check_sizes(AttachOptions& options) {
  if (options.common.quick && options.sizes == AttachOptions().sizes) options.sizes = "4K,64K,1M";
  options.size_list = byte_list("--sizes", options.sizes);
  const std::size_t most = std::ranges::max(options.size_list);
  if (most <= largest) return;
  throw Error(
      ErrorCode::argument,
      fmt::format("--sizes: {} bytes, expected up to 256M; write for example --sizes 4K,1M", most));
}

}  // namespace

bool AttachOptions::wants(const std::string& table) const {
  return std::ranges::count(table_list, table) > 0;
}

void describe(CLI::App& app, AttachOptions& options) {
  app.add_option("--sizes", options.sizes, "Bytes of a transfer")
      ->type_name("SIZE,...")
      ->capture_default_str();
  app.add_option("--tables", options.tables, "What to measure: see below; replay with --traces")
      ->type_name("NAME,...")
      ->each([&](const std::string&) { options.tables_given = true; })
      ->capture_default_str();
  app.add_option("--traces", options.traces, "Registration traces to replay")
      ->type_name("FILE,...");
  app.add_option("--entries", options.capacities, "Entries of the caches they are replayed in")
      ->type_name("N,...")
      ->capture_default_str();
  add_common_options(app, options.common);
  app.footer(about);
}

void check(AttachOptions& options) {
  options.table_list = words("--tables", options.tables, {"steps", "contention", "replay"});
  if (!options.traces.empty()) options.trace_list = split(options.traces, ',');
  if (!options.trace_list.empty() && !options.tables_given) options.table_list.push_back("replay");
  if (options.wants("replay") && options.trace_list.empty()) {
    throw Error(ErrorCode::argument,
                "--traces: none, expected files for the table replay; record one with "
                "ROPEWALK_REGISTRATION_TRACE, or leave the table out");
  }
  check_sizes(options);
  check_entries(options);
}

}  // namespace ropewalk::bench
