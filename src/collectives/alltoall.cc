// alltoall(v): every rank copies its block out of every other's send buffer. In an alltoall, a rank
// writes its blocks of private memory into the receive buffers that it sees.
#include <algorithm>
#include <cstring>

#include "collectives/algorithms.hpp"
#include "tuning/on_node.hpp"

namespace ropewalk::collectives {
namespace {

// Slots hold Shown and one entry a rank: where its block begins in the send buffer, and its length.
struct Block {
  std::uint64_t offset;
  std::uint64_t bytes;
};
constexpr std::size_t table_at = sizeof(Shown);
static_assert(tuning::alltoallv_table_bytes(3) == table_at + 3 * sizeof(Block));

std::size_t table_end(const Engine& engine) { return tuning::alltoallv_table_bytes(engine.size()); }

bool fits_slot(const Engine& engine, const Blocks& sends) {
  std::size_t total = table_end(engine);
  for (int peer = 0; peer < engine.size(); ++peer) {
    if (sends.counts[peer] > node::Slot::payload_bytes) return false;
    total += sends.counts[peer];
  }
  return total <= node::Slot::payload_bytes;
}

Shown inline_blocks(Engine& engine, node::Slot& own, const std::byte* send, const Blocks& sends) {
  std::size_t at = table_end(engine);
  for (int peer = 0; peer < engine.size(); ++peer) {
    const Block block{at, sends.counts[peer]};
    std::memcpy(own.payload + table_at + peer * sizeof block, &block, sizeof block);
    if (block.bytes > 0) {
      std::memcpy(own.payload + at, send + sends.displacements[peer], block.bytes);
    }
    at += block.bytes;
  }
  return {inlined_reference, Reference::none(), copied_whole};
}

Shown show_blocks(Engine& engine, node::Slot& own, const std::byte* send, const Blocks& sends) {
  for (int peer = 0; peer < engine.size(); ++peer) {
    const Block block{sends.displacements[peer], sends.counts[peer]};
    std::memcpy(own.payload + table_at + peer * sizeof block, &block, sizeof block);
  }
  return engine.copies().show_in_pieces(send, sends.end(engine.size()),
                                        engine.limits().piecewise_bytes);
}

struct Outcome {
  bool complete = true;
  int wrong = -1;  // a rank whose count differs
};

void take_block(Engine& engine, int peer, const node::Slot& slot, std::byte* target,
                std::size_t expected, Outcome& outcome) {
  Shown shown;
  Block block;
  std::memcpy(&shown, slot.payload, sizeof shown);
  std::memcpy(&block, slot.payload + table_at + engine.rank() * sizeof block, sizeof block);
  if (block.bytes != expected) {
    outcome.wrong = peer;
  } else if (shown.send == inlined_reference) {
    if (expected > 0) std::memcpy(target, slot.payload + block.offset, expected);
  } else {
    if (engine.path == Path::inlined) engine.path = shown.copied != 0 ? Path::staged : Path::mapped;
    if (shown.send.is_by_kernel()) engine.path = Path::cma;
    outcome.complete &= engine.copies().read(target, peer, shown, block.offset, expected,
                                             engine.stores(expected * engine.size()));
  }
}

void inlined_alltoall(Engine& engine, node::Slot& own, const std::byte* send, std::byte* target,
                      std::size_t bytes) {
  engine.path = Path::inlined;
  const int rank = engine.rank();
  const std::size_t total = bytes * static_cast<std::size_t>(engine.size());
  std::memcpy(own.place(total), send, total);
  engine.team().slots().arrive(total);
  engine.arrivals().wait_for_all(own);
  for (int peer = 0; peer < engine.size(); ++peer) {
    const node::Slot& slot = peer == rank ? own : engine.arrivals().of(peer, own);
    std::memcpy(target + peer * bytes, slot.place(total) + rank * bytes, bytes);
  }
}

// Shows both buffers of an alltoall. In place, others may write into the receive buffer only where
// a whole copy of it has been made.
Shown show_exchange(Engine& engine, const void* send, void* receive, std::size_t total, Range own) {
  const std::size_t limit = engine.limits().piecewise_bytes;
  Copies& copies = engine.copies();
  Reference target = Reference::none();
  if (total > limit || (send != receive && own.length() >= engine.limits().pushed_bytes)) {
    target = engine.memory().visible(receive, total);
  }
  Shown mine;
  if (send == receive) {
    mine = copies.copy_in_pieces(send, total, limit);
  } else if (target.is_visible()) {  // then it expects that it sees those of the others
    mine = copies.postpone_in_pieces(send, total, limit, own);
  } else {
    mine = copies.show_in_pieces(send, total, limit, own);
  }
  mine.receive = target;
  return mine;
}

}  // namespace

void alltoall(Engine& engine, const void* send, void* receive, std::size_t bytes_each) {
  const Scratch scratch(engine);
  const std::size_t total = bytes_each * engine.size();
  auto* target = static_cast<std::byte*>(receive);
  node::Slot& own = engine.arrivals().claim(Kind::alltoall, bytes_each);
  const auto* source = static_cast<const std::byte*>(send);
  if (total <= engine.limits().one_shot_bytes) {
    inlined_alltoall(engine, own, source, target, bytes_each);
    return;
  }
  engine.path = Path::mapped;
  const std::size_t offset = engine.rank() * bytes_each;
  const Shown mine = show_exchange(engine, send, receive, total, {offset, offset + bytes_each});
  if (send == receive) source = engine.resolve(engine.rank(), mine.send, total);
  const auto& shown = engine.meet(own, mine);
  bool complete = true;
  for (int step = 0; step < engine.size(); ++step) {
    const int peer = (engine.rank() + step) % engine.size();
    if (peer == engine.rank()) {
      kernels::copy(target + offset, source + offset, bytes_each, engine.stores(total));
      continue;
    }
    if (pushes(mine, shown[peer])) {
      complete &=
          engine.memory().write(peer, shown[peer].receive + offset, source + peer * bytes_each,
                                bytes_each, engine.stores(total));
    }
    if (pushes(shown[peer], mine)) continue;
    complete &= engine.copies().read(target + peer * bytes_each, peer, shown[peer], offset,
                                     bytes_each, engine.stores(total));
    if (shown[peer].send.is_by_kernel()) engine.path = Path::cma;
  }
  engine.leave(shown, complete);
}

void alltoallv(Engine& engine, const void* send, const Blocks& sends, void* receive,
               const Blocks& receives) {
  const Scratch scratch(engine);
  const int rank = engine.rank();
  auto* target = static_cast<std::byte*>(receive);
  const auto* source = static_cast<const std::byte*>(send);
  node::Slot& own = engine.arrivals().claim(Kind::alltoall, 0, 1);
  const bool inlined = fits_slot(engine, sends);
  engine.path = inlined ? Path::inlined : Path::mapped;
  if (send == receive && !inlined) {
    source = engine.copies().whole_copy(send, sends.end(engine.size()));
  }
  const Shown mine =
      inlined ? inline_blocks(engine, own, source, sends) : show_blocks(engine, own, source, sends);
  const auto& shown = engine.meet(own, mine);
  Outcome outcome;
  for (int step = 0; step < engine.size(); ++step) {
    const int peer = (rank + step) % engine.size();
    const node::Slot& slot = peer == rank ? own : engine.arrivals().of(peer, own);
    take_block(engine, peer, slot, target + receives.displacements[peer], receives.counts[peer],
               outcome);
  }
  engine.leave(shown, outcome.complete);
  if (outcome.wrong >= 0) {
    throw Error(ErrorCode::argument, "receive_counts: rank " + std::to_string(outcome.wrong) +
                                         " sends another number of bytes than rank " +
                                         std::to_string(rank) + " expects from it");
  }
}

}  // namespace ropewalk::collectives
