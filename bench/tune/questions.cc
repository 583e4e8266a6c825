#include "tune/questions.hpp"

#include <fmt/format.h>

#include <algorithm>

namespace ropewalk::bench {
namespace {

using tuning::Id;

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;

// Short messages would go through slots, whatever the ways that are compared. These lines lower the
// slots' limits to their least values.
constexpr std::string_view no_slots =
    "channel.slot_bytes = 104\nchannel.private_slot_bytes = 104\n";
// These lines switch off the copies in pieces, which would be taken before the kernel's copy.
constexpr std::string_view no_pieces = "node.piecewise_bytes = 0\nnode.piecewise_alone_bytes = 0\n";

const std::vector<TuneCall> in_slots = {
    {Op::allreduce}, {Op::reduce_scatter}, {Op::alltoall, Amount::all_blocks}};
const std::vector<TuneCall> rooted = {
    {Op::bcast}, {Op::reduce}, {Op::gather}, {Op::scatter, Amount::other_blocks}};
const std::vector<TuneCall> piecewise = {{Op::bcast},
                                         {Op::allgather},
                                         {Op::alltoall, Amount::all_blocks},
                                         {Op::scatter, Amount::all_blocks}};
const std::vector<TuneCall> alone = {{Op::allreduce}, {Op::reduce}, {Op::gather}};
// Rooted calls push from twice the threshold on.
const std::vector<TuneCall> pushed = {{Op::allgather},
                                      {Op::alltoall},
                                      {Op::bcast, Amount::half},
                                      {Op::gather, Amount::half},
                                      {Op::scatter, Amount::half}};

std::vector<Question> of_channel() {
  return {
      {.id = Id::channel_piece,
       .of_channel = true,
       .down = 2,
       .up = 3,
       .sizes = {128 * KiB, 512 * KiB, 2 * MiB}},
      {.id = Id::channel_slot,
       .of_channel = true,
       .below = "channel.slot_bytes = 64K\n",
       .above = "channel.slot_bytes = 104\n",
       .down = 4,
       .up = 3},
      {.id = Id::channel_pipeline_piece,
       .of_channel = true,
       .memory = TuneMemory::all_private,
       .beside = "channel.kernel_bytes = 1T\n",
       .down = 2,
       .up = 2,
       .sizes = {96 * KiB, 384 * KiB, 1536 * KiB, 4 * MiB}},
      {.id = Id::channel_kernel,
       .of_channel = true,
       .memory = TuneMemory::all_private,
       .from_on = true,
       .below = "channel.kernel_bytes = 1T\n",
       .above = "channel.kernel_bytes = 1\n",
       .beside = no_slots,
       .sizes = {4 * KiB, 8 * KiB, 16 * KiB, 32 * KiB, 64 * KiB, 128 * KiB, 256 * KiB, MiB, 4 * MiB,
                 16 * MiB}},
      {.id = Id::channel_private_slot,
       .of_channel = true,
       .memory = TuneMemory::all_private,
       .below = "channel.private_slot_bytes = 64K\n",
       .above = "channel.private_slot_bytes = 104\n",
       .down = 5,
       .up = 1},
      {.id = Id::channel_both,
       .of_channel = true,
       .from_on = true,
       .below = "channel.both_bytes = 1T\n",
       .above = "channel.both_bytes = 0\n",
       .beside = no_slots,
       .down = 4,
       .up = 4},
  };
}

std::vector<Question> small_calls() {
  return {
      {.id = Id::node_inlined,
       .below = "node.inlined_bytes = 5184\n",
       .above = "node.inlined_bytes = 0\n",
       .down = 3,
       .up = 3,
       .calls = in_slots},
      {.id = Id::node_inlined_allgather,
       .below = "node.inlined_allgather_bytes = 5184\n",
       .above = "node.inlined_allgather_bytes = 0\n",
       .down = 4,
       .up = 2,
       .calls = {{Op::allgather}}},
      {.id = Id::node_inlined_rooted,
       .below = "node.inlined_rooted_bytes = 5184\n",
       .above = "node.inlined_rooted_bytes = 0\n",
       .down = 5,
       .up = 1,
       .calls = rooted},
  };
}

std::vector<Question> private_calls() {
  return {
      {.id = Id::node_cma,
       .memory = TuneMemory::all_private,
       .from_on = true,
       .below = "node.cma_bytes = 1T\n",
       .above = "node.cma_bytes = 1\n",
       .beside = no_pieces,
       .down = 2,
       .up = 7,
       .calls = {{Op::bcast}, {Op::allreduce}, {Op::allgather}}},
      {.id = Id::node_piecewise,
       .memory = TuneMemory::all_private,
       .below = "node.piecewise_bytes = 64M\n",
       .above = "node.piecewise_bytes = 0\n",
       .down = 4,
       .up = 4,
       .calls = piecewise},
      {.id = Id::node_piecewise_alone,
       .memory = TuneMemory::all_private,
       .below = "node.piecewise_alone_bytes = 64M\n",
       .above = "node.piecewise_alone_bytes = 0\n",
       .down = 4,
       .up = 4,
       .calls = alone},
      {.id = Id::node_piece,
       .memory = TuneMemory::all_private,
       .down = 1,
       .up = 3,
       .sizes = {32 * KiB, 128 * KiB, 256 * KiB},
       .calls = piecewise},
      // Its default lies far from all sizes where ranks share cores.
      {.id = Id::node_pushed,
       .memory = TuneMemory::mixed,
       .from_on = true,
       .below = "node.pushed_bytes = 1T\n",
       .above = "node.pushed_bytes = 1\n",
       .sizes = {4 * KiB, 8 * KiB, 16 * KiB, 32 * KiB, 64 * KiB, 128 * KiB},
       .calls = pushed},
      {.id = Id::node_staging_chunk,
       .memory = TuneMemory::all_private,
       .down = 2,
       .up = 3,
       .sizes = {512 * KiB, 2 * MiB, 4 * MiB},
       .calls = {{Op::allreduce}, {Op::bcast}}},
  };
}

std::vector<Question> large_calls() {
  return {
      {.id = Id::node_two_level,
       .from_on = true,
       .below = "node.two_level_bytes = 1T\n",
       .above = "node.two_level_bytes = 0\n",
       .down = 4,
       .up = 8,
       .calls = {{Op::allreduce}, {Op::reduce}}},
      // The buffers are rewritten before each call, as a program does that computes them: results
      // that were stored past the caches cost time when the program then works on them.
      {.id = Id::node_streaming,
       .rewritten = true,
       .from_on = true,
       .below = "node.streaming_bytes = 1T\n",
       .above = "node.streaming_bytes = 1\n",
       .down = 5,
       .up = 2,
       .calls = {{Op::allreduce}, {Op::bcast}}},
  };
}

}  // namespace

std::string_view name(TuneMemory memory) {
  constexpr std::string_view names[] = {"arena", "private", "mixed"};
  return names[static_cast<std::size_t>(memory)];
}

const std::vector<Question>& questions() {
  static const std::vector<Question> all = [] {
    std::vector<Question> made = of_channel();
    for (const auto& more : {small_calls(), private_calls(), large_calls()}) {
      made.insert(made.end(), more.begin(), more.end());
    }
    return made;
  }();
  return all;
}

const std::vector<ForcedPath>& forced_paths() {
  static const std::vector<ForcedPath> all = {
      {TuneMemory::arena, "inlined",
       "node.inlined_bytes = 5184\nnode.inlined_allgather_bytes = 5184\n"
       "node.inlined_rooted_bytes = 5184\n"},
      {TuneMemory::arena, "mapped",
       "node.inlined_bytes = 0\nnode.inlined_allgather_bytes = 0\n"
       "node.inlined_rooted_bytes = 0\n"},
      {TuneMemory::all_private, "staged",
       "node.inlined_bytes = 0\nnode.inlined_allgather_bytes = 0\n"
       "node.inlined_rooted_bytes = 0\nnode.piecewise_bytes = 64M\n"
       "node.piecewise_alone_bytes = 64M\n"},
      {TuneMemory::all_private, "cma",
       "node.inlined_bytes = 0\nnode.inlined_allgather_bytes = 0\n"
       "node.inlined_rooted_bytes = 0\nnode.piecewise_bytes = 0\n"
       "node.piecewise_alone_bytes = 0\nnode.cma_bytes = 1\n"},
  };
  return all;
}

std::string with_found(std::string_view lines,
                       const std::map<std::string, std::size_t, std::less<>>& found) {
  std::string all(lines);
  for (const auto& [name, value] : found) {
    if (lines.find(name + " = ") != std::string_view::npos) continue;
    all += fmt::format("{} = {}\n", name, value);
  }
  return all;
}

std::size_t call_bytes(const TuneCall& call, std::size_t amount, int ranks) {
  const auto all = static_cast<std::size_t>(ranks);
  if (call.amount == Amount::half) amount *= 2;
  std::size_t parts = 1;
  if (call.amount == Amount::all_blocks) parts = all;
  if (call.amount == Amount::other_blocks) parts = std::max<std::size_t>(all - 1, 1);
  return std::max<std::size_t>(amount / parts / sizeof(float), 1) * sizeof(float);
}

}  // namespace ropewalk::bench
