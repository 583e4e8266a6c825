// Options of the benchmark of collectives; see options.hpp.
#include "collectives/options.hpp"

#include <fmt/format.h>

#include <algorithm>

#include "common/parse.hpp"
#include "common/validators.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t largest = std::size_t{1} << 30;
constexpr std::size_t largest_on_network = std::size_t{16} << 20;  // by default: what takes long

// Over a network the forms ending in v take ways of their own, and large calls take long.
void set_network_defaults(CollectivesBenchOptions& options) {
  if (!options.ops_given) options.ops += ",allgatherv,alltoallv,gatherv,scatterv";
  if (!options.sizes_given && !options.common.quick) {
    options.sizes = "8,64,512,4K,16K,64K,256K,1M,4M,16M";
  }
  if (!options.buffers_given) options.buffers = "hot";
}

void check_sizes(CollectivesBenchOptions& options) {
  if (options.common.quick && !options.sizes_given) {
    options.sizes = "8,1K,16K,256K,4M";
  }
  options.size_list = byte_list("--sizes", options.sizes);
  for (const std::size_t size : options.size_list) {
    if (size % sizeof(float) == 0 && size <= largest) continue;
    throw Error(ErrorCode::argument,
                fmt::format("--sizes: {} bytes, expected multiples of 4 (floats are summed) up to "
                            "1G; write for example --sizes 8,1K,16K,4M",
                            size));
  }
}

}  // namespace

void describe(CLI::App& app, CollectivesBenchOptions& options) {
  app.add_option("--op", options.ops,
                 "Collectives to measure, as a list; also allgatherv, alltoallv, gatherv and "
                 "scatterv, with equal blocks")
      ->type_name("NAME,...")
      ->each([&](const std::string&) { options.ops_given = true; })
      ->capture_default_str();
  app.add_option("--sizes", options.sizes,
                 "Bytes, as OSU counts them: of the vector (allreduce, reduce, bcast, "
                 "reduce_scatter) or of one block (allgather, alltoall, gather, scatter); to 1G")
      ->type_name("BYTES,...")
      ->each([&](const std::string&) { options.sizes_given = true; })
      ->capture_default_str();
  app.add_option("--buffers", options.buffers,
                 "hot: the same data every time, as OSU; rewritten: the owner writes its send "
                 "buffer anew before each call")
      ->type_name("NAME,...")
      ->each([&](const std::string&) { options.buffers_given = true; })
      ->capture_default_str();
  app.add_option("--memory", options.memory,
                 "arena: buffers that peers can map; private: memory of libc; mixed: send buffers "
                 "(of a bcast, the root's) are private, receive buffers in the arena")
      ->type_name("NAME,...")
      ->capture_default_str();
  app.add_flag("--model", options.model,
               "Measure the constants of the cost model of Hashmi et al. 2018, and show what it "
               "predicts");
  app.add_option("--iterations", options.iterations,
                 "Calls a sample; default: as many as last a few milliseconds")
      ->type_name("N")
      ->check(whole_number(1, 1000000));
  add_common_options(app, options.common);
  app.footer(
      "Each collective (float, sum, root 0) through the plain MPI and through ropewalk, in turn, "
      "by\n"
      "the same processes on the same buffers; results are checked. The limit is the time of the "
      "same\n"
      "loads and stores by all ranks at once, without any synchronisation, from 16 KiB on. Over "
      "several\n"
      "nodes it is that of the bytes that a node's link must carry, at ROPEWALK_LINE_RATE (MB/s of "
      "a node,\n"
      "one way), which `ropewalk cluster` sets; then the default is all collectives, 8 B to 16 "
      "MiB, "
      "hot.\n"
      "Examples:\n"
      "  ropewalk run -n 2 -- ropewalk-bench-collectives --quick\n"
      "  ropewalk run -n 2 -- ropewalk-bench-collectives --op allreduce --sizes 8,1K,64M --model\n"
      "  ropewalk bench collectives -n 2 --against mpich,openmpi,intel\n"
      "  ropewalk cluster --nodes 4 --ranks-per-node 2 -- ropewalk bench collectives");
}

std::vector<std::size_t> sizes_of(const CollectivesBenchOptions& options, Op op, int ranks) {
  if (op == Op::barrier) return {0};
  std::vector<std::size_t> sizes = options.size_list;
  if (options.sizes_given || options.line_rate == 0) return sizes;
  std::erase_if(sizes, [&](std::size_t bytes) {
    const CallShape root{op, bytes, ranks, 0};
    return std::max(root.send_count(), root.receive_count()) * sizeof(float) > largest_on_network;
  });
  return sizes;
}

std::vector<CollectiveCase> cases(const CollectivesBenchOptions& options, int ranks) {
  std::vector<CollectiveCase> all;
  for (const std::string& memory : options.memory_list) {
    for (const std::string& buffers : options.buffer_list) {
      for (const Op op : options.op_list) {
        if (op == Op::barrier &&
            (memory != options.memory_list.front() || buffers != options.buffer_list.front())) {
          continue;
        }
        for (const std::size_t bytes : sizes_of(options, op, ranks)) {
          all.push_back({memory, buffers, op, bytes});
        }
      }
    }
  }
  return all;
}

bool check(CollectivesBenchOptions& options) {
  options.line_rate = line_rate_of_environment();
  if (options.line_rate > 0) set_network_defaults(options);
  check_sizes(options);
  for (const std::string& word : words("--op", options.ops, op_names())) {
    options.op_list.push_back(op_of(word));
  }
  options.buffer_list = words("--buffers", options.buffers, {"hot", "rewritten"});
  if (options.common.quick && !options.buffers_given) {
    options.buffer_list = {"hot"};
  }
  options.memory_list = words("--memory", options.memory, {"arena", "private", "mixed"});
  return false;
}

}  // namespace ropewalk::bench
