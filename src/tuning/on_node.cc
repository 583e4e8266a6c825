#include "tuning/on_node.hpp"

#include "node/control.hpp"
#include "ropewalk/collectives.hpp"

namespace ropewalk::tuning {
namespace {

// What of a call is compared: one number for all, a block, the blocks of all ranks, or those of all
// but one.
enum class Part : std::uint8_t { vector, block, all_blocks, other_blocks };

struct Sizes {
  Collective what;
  Id inlined;
  Part inlined_part;
  Id copied;
  Part copied_part;
};
constexpr Sizes sizes[] = {
    {Collective::broadcast, Id::node_inlined_rooted, Part::vector, Id::node_piecewise,
     Part::vector},
    {Collective::reduce, Id::node_inlined_rooted, Part::vector, Id::node_piecewise_alone,
     Part::vector},
    {Collective::allreduce, Id::node_inlined, Part::vector, Id::node_piecewise_alone, Part::vector},
    {Collective::scan, Id::node_inlined, Part::vector, Id::node_piecewise_alone, Part::vector},
    {Collective::exscan, Id::node_inlined, Part::vector, Id::node_piecewise_alone, Part::vector},
    {Collective::reduce_scatter, Id::node_inlined, Part::vector, Id::node_piecewise_alone,
     Part::vector},
    {Collective::allgather, Id::node_inlined_allgather, Part::block, Id::node_piecewise,
     Part::block},
    {Collective::gather, Id::node_inlined_rooted, Part::block, Id::node_piecewise_alone,
     Part::block},
    {Collective::scatter, Id::node_inlined_rooted, Part::other_blocks, Id::node_piecewise,
     Part::all_blocks},
    {Collective::alltoall, Id::node_inlined, Part::all_blocks, Id::node_piecewise,
     Part::all_blocks},
    {Collective::allgatherv, Id::node_inlined_allgather, Part::block, Id::node_piecewise,
     Part::block},
    {Collective::gatherv, Id::node_inlined_rooted, Part::block, Id::node_piecewise_alone,
     Part::block},
    {Collective::scatterv, Id::node_inlined_rooted, Part::other_blocks, Id::node_piecewise,
     Part::all_blocks},
    // No size is compared for its slots: reason_slot_with_table().
    {Collective::alltoallv, Id::node_inlined, Part::all_blocks, Id::node_piecewise,
     Part::all_blocks},
};

const Sizes& sizes_of(Collective what) {
  for (const Sizes& one : sizes) {
    if (one.what == what) return one;
  }
  return sizes[0];  // not reached: a barrier asks none
}

Amount amount(Part part, std::size_t bytes, int ranks) {
  const auto all = static_cast<std::size_t>(ranks);
  switch (part) {
    case Part::vector:
      return {bytes, "the vector"};
    case Part::block:
      return {bytes, "a block"};
    case Part::all_blocks:
      return {bytes * all, "the blocks of all ranks"};
    case Part::other_blocks:
      return {bytes * (all - 1), "the blocks of all others"};
  }
  return {};
}

bool reduces_in_levels(Collective what) {
  return what == Collective::allreduce || what == Collective::reduce;
}

// The ranks of an alltoallv know different sizes, so that each decides about its own slot: it has
// room for the blocks beside their table, or not.
void reason_slot_with_table(Reasons& reasons, std::size_t bytes, const Situation& situation) {
  const std::size_t needed =
      alltoallv_table_bytes(situation.ranks) + bytes * static_cast<std::size_t>(situation.ranks);
  const auto compared = [needed](const char* how) {
    return "the blocks and their table (" + size_text(needed) + ") " + how + " a slot (" +
           size_text(node::Slot::payload_bytes) + ")";
  };
  reasons.when({needed <= node::Slot::payload_bytes, compared("do not fit into")},
               compared("fit into"), {name(Path::inlined), "in the slots, beside the flags"});
}

void reason_mapped(Reasons& reasons, Collective what, std::size_t bytes,
                   const Situation& situation) {
  const std::string_view path = name(Path::mapped);
  const bool arena = !situation.private_memory;
  const std::string where = "the buffers are private";
  if (reduces_in_levels(what)) {
    const bool levels = situation.domains > 1 && situation.domains < situation.ranks;
    reasons.from(Id::node_two_level, {bytes, "the vector"},
                 {path, "cache domains reduce among themselves first"},
                 {arena && levels, arena ? "no domain of several has several ranks" : where, true});
  }
  reasons.when({arena, where}, "the buffers are in the arenas, which all ranks map",
               {path, "straight between the buffers"});
}

void reason_private(Reasons& reasons, const Sizes& asked, std::size_t bytes,
                    const Situation& situation) {
  const std::string arena = "the buffers are in the arenas";
  const bool is_private = situation.private_memory;
  reasons.from(
      Id::node_attach, {bytes, "the buffer"},
      {name(Path::mapped), "straight between buffers that are attached"},
      {is_private && situation.xpmem, is_private ? "not every rank has XPMEM" : arena, true});
  reasons.up_to(asked.copied, amount(asked.copied_part, bytes, situation.ranks),
                {name(Path::staged), "copied into the arena piece by piece, while others read"},
                {is_private, arena, true});
}

}  // namespace

void reason_on_node(Reasons& reasons, Collective what, std::size_t bytes,
                    const Situation& situation) {
  if (situation.ranks == 1) {
    return reasons.when({}, "the rank is alone", {name(Path::none), "nothing to communicate"});
  }
  if (what == Collective::barrier) {
    return reasons.when({}, "a barrier is flags alone", {name(Path::inlined), "in the slots"});
  }
  const Sizes& asked = sizes_of(what);
  const Amount inlined = amount(asked.inlined_part, bytes, situation.ranks);
  if (what == Collective::alltoallv) {
    reason_slot_with_table(reasons, bytes, situation);
  } else {
    reasons.up_to(asked.inlined, inlined, {name(Path::inlined), "in the slots, beside the flags"});
  }
  reason_private(reasons, asked, bytes, situation);
  reason_mapped(reasons, what, bytes, situation);
  const bool is_private = situation.private_memory;
  reasons.from(Id::node_cma, amount(asked.copied_part, bytes, situation.ranks),
               {name(Path::cma), "the kernel copies from process to process"},
               {is_private && situation.cma,
                is_private ? "the kernel does not let ranks read each other"
                           : "the buffers are in the arenas",
                true});
  reasons.otherwise({name(Path::staged), "through the arenas, as a copy or chunk by chunk"});
}

}  // namespace ropewalk::tuning
