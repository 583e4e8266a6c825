// gather(v) and scatter(v).
//
// Ranks know only their own count, so each pair decides for itself from what both know: a block
// that fits a slot travels in it, and its sender does not wait; larger blocks are pushed into a
// mapped root by their owners, all at once, or pulled by the root. A small private block goes
// through its owner's arena, or straight into a buffer that the owner sees, where it finds in time
// that the other has come. Every rank counts one phase a call, and shows it where somebody waits
// for it.
#include <algorithm>
#include <cstring>

#include "collectives/algorithms.hpp"

namespace ropewalk::collectives {
namespace {

// What the slot of a rank holds that shows its buffer: Shown, and at the root a table of blocks.
struct Block {
  std::uint64_t offset;
  std::uint64_t bytes;
};
constexpr std::size_t table_at = sizeof(Shown);

Shown shown_of(const node::Slot& slot) {
  Shown shown;
  std::memcpy(&shown, slot.payload, sizeof shown);
  return shown;
}

Block block_of(const node::Slot& slot, int rank) {
  Block block;
  std::memcpy(&block, slot.payload + table_at + rank * sizeof block, sizeof block);
  return block;
}

void write_table(Engine& engine, node::Slot& own, const Shown& shown, const Blocks& blocks) {
  std::memcpy(own.payload, &shown, sizeof shown);
  for (int peer = 0; peer < engine.size(); ++peer) {
    const Block block{blocks.displacements[peer], blocks.counts[peer]};
    std::memcpy(own.payload + table_at + peer * sizeof block, &block, sizeof block);
  }
}

Reference first_of(const node::Slot& slot) {
  Reference reference;
  std::memcpy(&reference, slot.payload, sizeof reference);
  return reference;
}

// From here on a private block is written where it belongs. Who looks for the others loses the lead
// that a copy would give it: 16 KiB take 1.1 times as long so; those of an allgather do not.
std::size_t pushed_bytes(const Engine& engine) { return 2 * engine.limits().pushed_bytes; }

[[noreturn]] void wrong_count(const char* argument, int rank, std::size_t here, int root,
                              const std::string& there) {
  throw Error(ErrorCode::argument, std::string(argument) + ": rank " + std::to_string(rank) +
                                       " passes " + std::to_string(here) +
                                       " bytes, the root (rank " + std::to_string(root) +
                                       ") expects " + there + "; both must be equal");
}

// ---- gather

// What a sender's slot holds: the bytes of its block, then the block itself or Shown.
constexpr std::size_t sent_at = sizeof(std::uint64_t);
constexpr std::size_t beside_flag_bytes = node::Slot::beside_flag_bytes - sent_at;

bool fits_slot(const Engine& engine, std::size_t bytes) {
  return bytes <= engine.limits().rooted_bytes;
}
// Where an inlined block of a sender lies: in the flag's line, or from the next line on.
std::size_t block_at(std::size_t bytes) {
  return bytes <= beside_flag_bytes ? sent_at : node::Slot::beside_flag_bytes;
}
std::uint64_t sent_bytes(const node::Slot& slot) {
  std::uint64_t bytes = 0;
  std::memcpy(&bytes, slot.payload, sizeof bytes);
  return bytes;
}
Shown shown_by_sender(const node::Slot& slot) {
  Shown shown;
  std::memcpy(&shown, slot.payload + sent_at, sizeof shown);
  return shown;
}

// Whether a sender writes its block into the root's buffer itself: all senders at once.
bool pushes(const Engine& engine, const Shown& at_root, std::size_t bytes) {
  if (at_root.receive.is_visible()) return true;
  return at_root.receive.is_by_kernel() && bytes >= engine.limits().cma_bytes;
}

// Whether the root, which has come already or does so soon, has a buffer that this rank sees: then
// its block need not be copied twice.
bool sees_root(Engine& engine, const node::Slot& own, std::uint64_t bytes, int root) {
  const node::Slot* slot = engine.arrivals().soon(root, own, bytes);
  if (slot == nullptr || first_of(*slot) == inlined_reference) return false;
  return shown_of(*slot).receive.is_visible() && block_of(*slot, engine.rank()).bytes == bytes;
}

Shown show_block(Engine& engine, const node::Slot& own, const void* send, std::uint64_t bytes,
                 int root) {
  const std::size_t limit = engine.limits().alone_bytes;
  const bool copied = bytes <= limit && engine.memory().visible(send, bytes).is_none();
  if (copied && bytes >= pushed_bytes(engine) && sees_root(engine, own, bytes, root)) {
    return {pushed_reference};
  }
  return engine.copies().show_in_pieces(send, bytes, limit);
}

// Takes the block of one sender, or finds that the sender pushes it. Returns false where it could
// not be read.
bool take_block(Engine& engine, int peer, const node::Slot& slot, std::byte* target,
                std::size_t bytes, const Shown& at_root) {
  if (fits_slot(engine, bytes)) {
    if (bytes > 0) std::memcpy(target, slot.payload + block_at(bytes), bytes);
    return true;
  }
  const Shown shown = shown_by_sender(slot);
  if (shown.copied == 0 && pushes(engine, at_root, bytes)) {
    engine.path = at_root.receive.is_by_kernel() ? Path::cma : Path::mapped;
    return true;
  }
  engine.path = shown.copied != 0 ? Path::staged : Path::mapped;
  if (shown.send.is_by_kernel()) engine.path = Path::cma;
  return engine.copies().read(target, peer, shown, 0, bytes, engine.stores(bytes));
}

// The root arrives: with its buffer and a table of blocks where some are too large for a slot.
Shown show_target(Engine& engine, node::Slot& own, void* receive, const Blocks& blocks) {
  bool any_large = false;
  for (int peer = 0; peer < engine.size(); ++peer) {
    any_large |= peer != engine.rank() && !fits_slot(engine, blocks.counts[peer]);
  }
  Shown mine{inlined_reference, inlined_reference};
  if (any_large) {
    const std::size_t end = blocks.end(engine.size());
    mine = {Reference::none(), engine.memory().reachable(receive, end)};
    write_table(engine, own, mine, blocks);
  } else {
    std::memcpy(own.payload, &mine.send, sizeof mine.send);
  }
  engine.team().slots().arrive();
  return mine;
}

void gather_at_root(Engine& engine, node::Slot& own, const void* send, void* receive,
                    const Blocks& blocks) {
  node::Team& team = engine.team();
  const int rank = engine.rank();
  auto* target = static_cast<std::byte*>(receive);
  const Shown mine = show_target(engine, own, receive, blocks);
  engine.path = Path::inlined;
  if (blocks.counts[rank] > 0 && target + blocks.displacements[rank] != send) {
    kernels::copy(target + blocks.displacements[rank], send, blocks.counts[rank],
                  engine.stores(blocks.counts[rank]));
  }
  bool complete = true;
  int wrong = -1;
  for (int step = 1; step < engine.size(); ++step) {
    const int peer = (rank + step) % engine.size();
    const node::Slot& slot = engine.arrivals().of(peer, own);
    if (slot.call != own.call) continue;
    if (sent_bytes(slot) != blocks.counts[peer]) {
      wrong = peer;
    } else {
      complete &= take_block(engine, peer, slot, target + blocks.displacements[peer],
                             blocks.counts[peer], mine);
    }
  }
  team.slots().all_arrived();
  const std::uint64_t phase =
      engine.path == Path::inlined ? team.phases().skip() : team.phases().finish();
  for (int peer = 0; peer < engine.size(); ++peer) {
    if (peer == rank || fits_slot(engine, blocks.counts[peer])) continue;
    const node::Slot& slot = team.slots().arrival(peer);
    // A rank in another call, or with another count, finishes no phase that this one could await;
    // one that has shown a copy has gone.
    if (slot.call == own.call && sent_bytes(slot) == blocks.counts[peer] &&
        shown_by_sender(slot).copied == 0) {
      team.phases().wait_for(peer, phase);
    }
  }
  engine.arrivals().check(own);
  if (wrong >= 0) {
    wrong_count("counts", wrong, sent_bytes(team.slots().arrival(wrong)), rank,
                std::to_string(blocks.counts[wrong]));
  }
  engine.duties().check_complete(phase);
  if (!complete) engine.duties().throw_unreadable();
}

void send_inlined(Engine& engine, node::Slot& own, const void* send, std::uint64_t bytes) {
  engine.path = Path::inlined;
  std::memcpy(own.payload, &bytes, sizeof bytes);
  if (bytes > 0) std::memcpy(own.payload + block_at(bytes), send, bytes);
  engine.team().slots().arrive(bytes);
  engine.team().phases().skip();
}

void gather_at_sender(Engine& engine, node::Slot& own, const void* send, std::uint64_t bytes,
                      int root) {
  if (fits_slot(engine, bytes)) {
    send_inlined(engine, own, send, bytes);
    return;
  }
  node::Team& team = engine.team();
  engine.path = Path::mapped;
  const Shown mine = show_block(engine, own, send, bytes, root);
  std::memcpy(own.payload, &bytes, sizeof bytes);
  std::memcpy(own.payload + sent_at, &mine, sizeof mine);
  team.slots().arrive();
  engine.copies().add_rest();
  if (mine.copied != 0) {
    team.phases().skip();
    return;
  }
  const node::Slot& slot = engine.arrivals().of(root, own);
  const bool has_table = slot.call == own.call && first_of(slot) != inlined_reference;
  const Block block = has_table ? block_of(slot, engine.rank()) : Block{0, 0};
  const bool agreed = block.bytes == bytes;
  bool pushed = true;
  if (agreed) {
    const Shown at_root = shown_of(slot);
    if (pushes(engine, at_root, bytes)) {
      if (at_root.receive.is_by_kernel()) engine.path = Path::cma;
      pushed = engine.memory().write(root, at_root.receive + block.offset, send, bytes,
                                     engine.stores(bytes));
    }
  }
  const std::uint64_t phase = pushed ? team.phases().finish() : team.phases().fail();
  engine.arrivals().check(own);
  if (!agreed) {
    wrong_count("send_bytes", engine.rank(), bytes, root,
                has_table ? std::to_string(block.bytes) : "less");
  }
  team.phases().wait_for(root, phase);
  if (!pushed) engine.duties().check_complete(phase);
}

// ---- scatter

// The root's slot then holds all blocks: inlined_reference, one Place for each rank, and the
// blocks.
struct Place {
  std::uint16_t at;  // from the beginning of the payload
  std::uint16_t bytes;
};
constexpr std::size_t places_at = sizeof(Reference);

// Where a block goes at `at` or behind, so that it straddles no more lines than it must.
std::size_t placed(std::size_t at, std::size_t bytes) {
  constexpr std::size_t line = node::Slot::line_bytes;
  const std::size_t first = at + node::Slot::header_bytes;
  const bool straddles = first / line != (first + std::max<std::size_t>(bytes, 1) - 1) / line;
  return straddles ? (first + line - 1) / line * line - node::Slot::header_bytes : at;
}

// Gives the blocks places one behind the other, and none to the root's own. Returns false when they
// do not fit.
template <class Take>
bool deal(const Engine& engine, const Blocks& blocks, Take take) {
  std::size_t at = places_at + static_cast<std::size_t>(engine.size()) * sizeof(Place);
  const std::size_t capacity = std::min(node::Slot::payload_bytes,
                                        at + node::Slot::line_bytes + engine.limits().rooted_bytes);
  for (int peer = 0; peer < engine.size(); ++peer) {
    const std::size_t bytes = peer == engine.rank() ? 0 : blocks.counts[peer];
    at = placed(at, bytes);
    if (bytes > capacity || at + bytes > capacity) return false;
    take(peer, Place{static_cast<std::uint16_t>(at), static_cast<std::uint16_t>(bytes)});
    at += bytes;
  }
  return true;
}

void inline_blocks(Engine& engine, node::Slot& own, const std::byte* send, const Blocks& blocks) {
  std::memcpy(own.payload, &inlined_reference, sizeof inlined_reference);
  deal(engine, blocks, [&](int peer, Place place) {
    std::memcpy(own.payload + places_at + static_cast<std::size_t>(peer) * sizeof place, &place,
                sizeof place);
    if (place.bytes > 0) {
      std::memcpy(own.payload + place.at, send + blocks.displacements[peer], place.bytes);
    }
  });
}

// What a receiver's slot holds: Shown, then the bytes that it wants.
void show_wanted(Engine& engine, node::Slot& own, void* receive, std::uint64_t bytes) {
  Shown mine;
  if (bytes >= pushed_bytes(engine)) {
    mine.receive = engine.memory().visible(receive, bytes);
  }
  std::memcpy(own.payload, &mine, sizeof mine);
  std::memcpy(own.payload + table_at, &bytes, sizeof bytes);
}

// Whether the root sees the buffers of all receivers, which have come already or do so soon. Then
// it writes their private blocks there, instead of into a copy from which they read.
bool sees_receivers(Engine& engine, const node::Slot& own, const Blocks& blocks) {
  for (int step = 1; step < engine.size(); ++step) {
    const int peer = (engine.rank() + step) % engine.size();
    const std::uint64_t bytes = blocks.counts[peer];
    if (bytes < pushed_bytes(engine)) return false;
    const node::Slot* slot = engine.arrivals().soon(peer, own, bytes);
    if (slot == nullptr || !shown_of(*slot).receive.is_visible()) return false;
    std::uint64_t wanted = 0;
    std::memcpy(&wanted, slot->payload + table_at, sizeof wanted);
    if (wanted != bytes) return false;
  }
  return true;
}

Shown show_source(Engine& engine, const node::Slot& own, const void* send, const Blocks& blocks) {
  const std::size_t end = blocks.end(engine.size());
  const std::size_t limit = engine.limits().piecewise_bytes;
  const bool copied = end <= limit && engine.memory().visible(send, end).is_none();
  if (copied && sees_receivers(engine, own, blocks)) return {pushed_reference};
  const std::size_t own_bytes = blocks.counts[engine.rank()];
  const std::size_t own_at = own_bytes > 0 ? blocks.displacements[engine.rank()] : 0;
  return engine.copies().show_in_pieces(send, end, limit, {own_at, own_at + own_bytes});
}

// Writes the blocks of all receivers, which wait for this phase.
void push_blocks(Engine& engine, const node::Slot& own, const std::byte* source,
                 const Blocks& blocks) {
  bool complete = true;
  for (int step = 1; step < engine.size(); ++step) {
    const int peer = (engine.rank() + step) % engine.size();
    const Shown shown = shown_of(engine.arrivals().of(peer, own));
    const std::size_t bytes = blocks.counts[peer];
    complete &= engine.memory().write(peer, shown.receive, source + blocks.displacements[peer],
                                      bytes, engine.stores(bytes));
  }
  node::Phases& phases = engine.team().phases();
  engine.duties().check_complete(complete ? phases.finish() : phases.fail());
}

void scatter_at_root(Engine& engine, node::Slot& own, const void* send, const Blocks& blocks,
                     void* receive) {
  const auto* source = static_cast<const std::byte*>(send);
  std::size_t end = 0;
  const bool inlined =
      deal(engine, blocks, [&](int, Place place) { end = std::size_t{place.at} + place.bytes; });
  bool copied = inlined;  // what receivers read is kept for them
  bool pushed = false;    // and so is what the root has written for them
  engine.path = inlined ? Path::inlined : Path::mapped;
  if (inlined) {
    inline_blocks(engine, own, source, blocks);
  } else {
    const Shown mine = show_source(engine, own, send, blocks);
    copied = mine.copied != 0;
    pushed = mine.send == pushed_reference;
    write_table(engine, own, mine, blocks);
  }
  engine.team().slots().arrive(inlined ? end : 0);
  engine.copies().add_rest();
  if (pushed) push_blocks(engine, own, source, blocks);
  const std::size_t bytes = blocks.counts[engine.rank()];
  const std::byte* own_block = source + blocks.displacements[engine.rank()];
  if (receive != nullptr && bytes > 0 && receive != own_block) {
    kernels::copy(receive, own_block, bytes, engine.stores(bytes));
  }
  if (pushed) return;
  const std::uint64_t phase = engine.team().phases().skip();  // nobody waits for the root
  if (copied) return;
  for (int peer = 0; peer < engine.size(); ++peer) {
    if (peer != engine.rank()) engine.arrivals().of(peer, own);
  }
  engine.arrivals().check(own);  // a rank in another call finishes no phase of this one
  engine.team().phases().wait_for_all(phase);
}

// Takes an inlined block; false when the root has another number of bytes for this rank.
bool take_place(Engine& engine, const node::Slot& slot, void* receive, std::size_t bytes,
                std::size_t& there) {
  Place place;
  std::memcpy(&place,
              slot.payload + places_at + static_cast<std::size_t>(engine.rank()) * sizeof place,
              sizeof place);
  there = place.bytes;
  if (there == bytes && bytes > 0) std::memcpy(receive, slot.payload + place.at, bytes);
  return there == bytes;
}

void scatter_at_receiver(Engine& engine, node::Slot& own, void* receive, std::size_t bytes,
                         int root) {
  show_wanted(engine, own, receive, bytes);
  engine.team().slots().arrive();
  const node::Slot& slot = engine.arrivals().of(root, own);
  bool agreed = slot.call == own.call;
  bool complete = true;
  std::size_t there = 0;
  if (agreed && first_of(slot) == inlined_reference) {
    engine.path = Path::inlined;
    engine.team().phases().skip();
    agreed = take_place(engine, slot, receive, bytes, there);
  } else {
    const Shown shown = shown_of(slot);
    const Block block = block_of(slot, engine.rank());
    there = block.bytes;
    agreed = agreed && there == bytes;
    engine.path = agreed && shown.send.is_by_kernel() ? Path::cma : Path::mapped;
    const bool pushed = shown.send == pushed_reference;
    if (agreed && !pushed) {
      complete =
          engine.copies().read(receive, root, shown, block.offset, bytes, engine.stores(bytes));
    }
    const std::uint64_t phase = engine.team().phases().finish();
    if (agreed && pushed) {
      engine.team().phases().wait_for(root, phase);
      engine.duties().check_complete(phase);
    }
  }
  engine.arrivals().check(own);
  if (!agreed) wrong_count("receive_bytes", engine.rank(), bytes, root, std::to_string(there));
  if (!complete) engine.duties().throw_unreadable();
}

}  // namespace

void gather(Engine& engine, const void* send, std::size_t bytes, void* receive,
            const Blocks* blocks, int root) {
  const Scratch scratch(engine);
  node::Slot& own = engine.arrivals().claim(Kind::gather, 0, 0, static_cast<std::uint32_t>(root));
  if (engine.rank() == root) {
    gather_at_root(engine, own, send, receive, *blocks);
  } else {
    gather_at_sender(engine, own, send, bytes, root);
  }
}

void scatter(Engine& engine, const void* send, const Blocks* blocks, void* receive,
             std::size_t bytes, int root) {
  const Scratch scratch(engine);
  node::Slot& own = engine.arrivals().claim(Kind::scatter, 0, 0, static_cast<std::uint32_t>(root));
  if (engine.rank() == root) {
    scatter_at_root(engine, own, send, *blocks, receive);
  } else {
    scatter_at_receiver(engine, own, receive, bytes, root);
  }
}

}  // namespace ropewalk::collectives
