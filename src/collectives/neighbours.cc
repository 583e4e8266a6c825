// This file exchanges blocks between neighbours in a grid or graph of ranks, as MPI's neighbourhood
// collectives send them.
//
// A rank looks at its neighbours only. Blocks that fit a slot together travel in it, and their
// sender does not wait; else the neighbours read them from where they lie. Every rank counts one
// phase a call, and shows it where a neighbour waits for it.
#include <algorithm>
#include <cstring>

#include "collectives/algorithms.hpp"
#include "collectives/typed_parts.hpp"

namespace ropewalk::collectives {
namespace {

// A slot holds Shown, a table of the blocks, and, where they are inlined, the blocks.
struct Block {
  std::uint64_t offset;  // in the send buffer, or in the slot where the blocks are inlined
  std::uint64_t bytes;
};
constexpr std::size_t table_at = sizeof(Shown);
static_assert(table_at + most_directions * sizeof(Block) < node::Slot::payload_bytes);

struct Exchange {
  Engine& engine;
  const NeighbourRanks& ranks;
  const CallOverNodes& call;
  node::Slot& own;

  std::size_t blocks_at() const noexcept {
    return table_at + ranks.destinations.size() * sizeof(Block);
  }

  void show(const void* send, const Blocks& sends);
  bool take(const IncomingBlock& from, std::byte* to, std::size_t bytes);
  std::byte* show(std::span<const TypedPart> sends, std::size_t landing_bytes);
  bool take(const IncomingBlock& from, const TypedPart& to, std::byte* landing);
  void finish(bool complete);

  Shown mine{inlined_reference};
  const std::byte* sent = nullptr;  // this rank's blocks, of which it may receive some itself
  bool awaited = false;             // a neighbour waits until its buffer has been read
  int wrong_sender = -1;            // sends another number of bytes than expected here
};

void put_block(node::Slot& slot, std::size_t number, const Block& block) {
  std::memcpy(slot.payload + table_at + number * sizeof block, &block, sizeof block);
}

Block block_of(const node::Slot& slot, std::size_t number) {
  Block block;
  std::memcpy(&block, slot.payload + table_at + number * sizeof block, sizeof block);
  return block;
}

Shown shown_of(const node::Slot& slot) {
  Shown shown;
  std::memcpy(&shown, slot.payload, sizeof shown);
  return shown;
}

void Exchange::show(const void* send, const Blocks& sends) {
  const std::size_t number = ranks.destinations.size();
  sent = static_cast<const std::byte*>(send);
  std::size_t total = 0;
  std::size_t end = 0;
  for (std::size_t k = 0; k < number; ++k) {
    total += sends.counts[k];
    if (sends.counts[k] > 0) end = std::max(end, sends.displacements[k] + sends.counts[k]);
  }
  const bool inlined =
      total <= std::min(engine.limits().rooted_bytes, node::Slot::payload_bytes - blocks_at());
  if (!inlined) mine = engine.copies().show_in_pieces(send, end, engine.limits().piecewise_bytes);
  std::memcpy(own.payload, &mine, sizeof mine);
  std::size_t at = blocks_at();
  for (std::size_t k = 0; k < number; ++k) {
    put_block(own, k, {inlined ? at : sends.displacements[k], sends.counts[k]});
    if (!inlined || sends.counts[k] == 0) continue;
    std::memcpy(own.payload + at, sent + sends.displacements[k], sends.counts[k]);
    at += sends.counts[k];
  }
  engine.team().slots().arrive(at);
  engine.copies().add_rest();
}

bool Exchange::take(const IncomingBlock& from, std::byte* to, std::size_t bytes) {
  const int peer = from.source;
  const bool itself = peer == engine.rank();
  const node::Slot& slot = itself ? own : engine.arrivals().of(peer, own);
  if (slot.call != own.call || slot.count != own.count) return true;  // found by check()
  const Shown shown = shown_of(slot);
  const Block block = block_of(slot, from.block);
  const bool inlined = shown.send == inlined_reference;
  awaited |= !itself && !inlined && shown.copied == 0;
  if (block.bytes != bytes) {
    wrong_sender = peer;
    return true;
  }
  if (bytes == 0) return true;
  if (inlined) {
    std::memcpy(to, slot.payload + block.offset, bytes);
    return true;
  }
  if (itself) {
    std::memcpy(to, sent + block.offset, bytes);
    return true;
  }
  engine.path = shown.copied != 0 ? Path::staged : Path::mapped;
  if (shown.send.is_by_kernel()) engine.path = Path::cma;
  return engine.copies().read(to, peer, shown, block.offset, bytes, engine.stores(bytes));
}

// The same for parts of any type.
std::byte* Exchange::show(std::span<const TypedPart> sends, std::size_t landing_bytes) {
  const ShownParts parts = show_parts(engine, own, sends, false, -1, landing_bytes);
  mine = parts.shown;
  std::memcpy(own.payload, &mine, sizeof mine);
  engine.team().slots().arrive(parts.bytes);
  return parts.landings;
}

bool Exchange::take(const IncomingBlock& from, const TypedPart& to, std::byte* landing) {
  const int peer = from.source;
  const bool itself = peer == engine.rank();
  const node::Slot& slot = itself ? own : engine.arrivals().of(peer, own);
  if (slot.call != own.call || slot.count != own.count) return true;  // found by check()
  awaited |= !itself && shown_of(slot).copied == 0;
  const Taken taken = take_part(engine, peer, slot, from.block, to, landing);
  if (taken == Taken::of_other_length) wrong_sender = peer;
  return taken != Taken::unreadable;
}

void Exchange::finish(bool complete) {
  node::Team& team = engine.team();
  const bool waits = mine.send != inlined_reference && mine.copied == 0;
  std::uint64_t phase = 0;
  if (!waits && !awaited) {
    phase = team.phases().skip();
  } else {
    phase = complete ? team.phases().finish() : team.phases().fail();
  }
  for (const int peer : ranks.destinations) {
    if (!waits || peer < 0 || peer == engine.rank()) continue;
    const node::Slot& slot = team.slots().arrival(peer);
    if (slot.call == own.call && slot.count == own.count) team.phases().wait_for(peer, phase);
  }
  engine.arrivals().check(own);
  if (wrong_sender >= 0) {
    throw Error(ErrorCode::argument, "counts: rank " + std::to_string(call.rank_of(wrong_sender)) +
                                         " sends this rank another number of bytes than it "
                                         "expects; both must be equal");
  }
  engine.duties().check_complete(phase);
  if (!complete) engine.duties().throw_unreadable();
}

}  // namespace

// Ranks may have different numbers of neighbours, so that the headers of their calls tell none.
void exchange_neighbours(Engine& engine, const NeighbourRanks& ranks, const void* send,
                         const Blocks& sends, void* receive, const Blocks& receives,
                         const CallOverNodes& call) {
  Exchange exchange{engine, ranks, call, engine.arrivals().claim(Kind::neighbours, 0)};
  engine.path = Path::inlined;
  exchange.show(send, sends);
  bool complete = true;
  for (std::size_t k = 0; k < ranks.incoming.size(); ++k) {
    if (ranks.incoming[k].source < 0) continue;
    complete &= exchange.take(ranks.incoming[k],
                              static_cast<std::byte*>(receive) + receives.displacements[k],
                              receives.counts[k]);
    call.go_on();
  }
  exchange.finish(complete);
}

void exchange_neighbours(Engine& engine, const NeighbourRanks& ranks,
                         std::span<const TypedPart> sends, std::span<const TypedPart> receives,
                         const CallOverNodes& call) {
  Exchange exchange{engine, ranks, call, engine.arrivals().claim(Kind::neighbours, 0, 1)};
  engine.path = Path::inlined;
  const Landings landings(receives, exchange.show(sends, Landings::bytes(receives)), -1);
  bool complete = true;
  for (std::size_t k = 0; k < ranks.incoming.size(); ++k) {
    if (ranks.incoming[k].source < 0) continue;
    complete &= exchange.take(ranks.incoming[k], receives[k], landings.of(k));
    call.go_on();
  }
  exchange.finish(complete);
  landings.unpack();
}

void exchange_neighbours(Engine& engine, const NeighbourRanks& ranks, const void* send,
                         const Blocks& sends, void* receive, const Blocks& receives) {
  const Scratch scratch(engine);
  exchange_neighbours(engine, ranks, send, sends, receive, receives, {});
}

void exchange_neighbours(Engine& engine, const NeighbourRanks& ranks,
                         std::span<const TypedPart> sends, std::span<const TypedPart> receives) {
  const Scratch scratch(engine);
  exchange_neighbours(engine, ranks, sends, receives, {});
}

}  // namespace ropewalk::collectives
