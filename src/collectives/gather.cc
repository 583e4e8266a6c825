// gather(v) and scatter(v).
//
// Ranks know only their own count, so each pair decides for itself from what both know: a block
// that fits a slot travels in it, and its sender does not wait; larger blocks are pushed into a
// mapped root by their owners, all at once, or pulled by the root. Every rank finishes one phase a
// call.
#include <algorithm>
#include <cstring>

#include "collectives/algorithms.hpp"

namespace ropewalk::collectives {
namespace {

// What a slot holds here: Shown, then at the root a table of blocks, then inlined bytes.
struct Block {
  std::uint64_t offset;
  std::uint64_t bytes;
};
constexpr std::size_t table_at = sizeof(Shown);

// Beyond this a block does not fit beside the table in the slots of the largest team.
std::size_t inline_limit(const Engine& engine) { return engine.limits().one_shot_bytes / 2; }

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

[[noreturn]] void wrong_count(const char* argument, int rank, std::size_t here, int root,
                              std::size_t there) {
  throw Error(ErrorCode::argument,
              std::string(argument) + ": rank " + std::to_string(rank) + " passes " +
                  std::to_string(here) + " bytes, the root (rank " + std::to_string(root) +
                  ") expects " + std::to_string(there) + "; both must be equal");
}

// ---- gather

void gather_at_root(Engine& engine, node::Slot& own, const void* send, void* receive,
                    const Blocks& blocks) {
  const int rank = engine.rank();
  auto* target = static_cast<std::byte*>(receive);
  Shown mine{private_reference, private_reference, 0};
  std::size_t end = 0;
  for (int peer = 0; peer < engine.size(); ++peer) {
    end = std::max(end, blocks.displacements[peer] + blocks.counts[peer]);
  }
  mine.receive = Engine::reference(receive, end);
  write_table(engine, own, mine, blocks);
  engine.team().arrive();
  engine.path = Path::inlined;
  if (blocks.counts[rank] > 0 && target + blocks.displacements[rank] != send) {
    kernels::copy(target + blocks.displacements[rank], send, blocks.counts[rank],
                  engine.stores(blocks.counts[rank]));
  }
  bool complete = true;
  int wrong = -1;
  std::uint64_t there = 0;
  for (int step = 1; step < engine.size(); ++step) {
    const int peer = (rank + step) % engine.size();
    const node::Slot& slot = engine.arrival(peer, own);
    std::uint64_t bytes = 0;
    std::memcpy(&bytes, slot.payload + table_at, sizeof bytes);
    if (slot.call != own.call) continue;
    if (bytes != blocks.counts[peer]) {
      wrong = peer;
      there = bytes;
    } else if (bytes <= inline_limit(engine)) {
      if (bytes > 0) {
        std::memcpy(target + blocks.displacements[peer], slot.payload + table_at + sizeof(Block),
                    bytes);
      }
    } else if (mine.receive == private_reference) {
      const Shown shown = shown_of(slot);
      engine.path = shown.private_send != 0 ? Path::cma : Path::mapped;
      complete &= engine.read(target + blocks.displacements[peer], peer, shown, 0, bytes,
                              engine.stores(bytes));
    } else {
      engine.path = Path::mapped;
    }
  }
  engine.team().all_arrived();
  const std::uint64_t phase = engine.team().finish_phase();
  engine.check(own);  // a rank in another call finishes no phase of this one
  for (int peer = 0; peer < engine.size(); ++peer) {
    if (peer != rank && blocks.counts[peer] > inline_limit(engine)) {
      engine.team().wait_for_phase(peer, phase);
    }
  }
  if (wrong >= 0) wrong_count("counts", wrong, there, rank, blocks.counts[wrong]);
  if (!complete) engine.throw_unreadable();
}

void gather_at_sender(Engine& engine, node::Slot& own, const void* send, std::size_t bytes,
                      int root) {
  node::Team& team = engine.team();
  const std::uint64_t size = bytes;
  const bool inlined = bytes <= inline_limit(engine);
  Shown mine{private_reference, private_reference, 0};
  engine.path = inlined ? Path::inlined : Path::mapped;
  if (!inlined) mine = engine.show(send, bytes);
  std::memcpy(own.payload, &mine, sizeof mine);
  std::memcpy(own.payload + table_at, &size, sizeof size);
  if (inlined && bytes > 0) std::memcpy(own.payload + table_at + sizeof(Block), send, bytes);
  team.arrive();
  if (inlined) {
    team.finish_phase();
    return;
  }
  const node::Slot& slot = engine.arrival(root, own);
  const Shown at_root = shown_of(slot);
  const Block block = block_of(slot, engine.rank());
  const bool agreed = slot.call == own.call && block.bytes == bytes;
  if (agreed && at_root.receive != private_reference) {
    kernels::copy(engine.resolve(root, at_root.receive) + block.offset, send, bytes,
                  engine.stores(bytes));
  }
  const std::uint64_t phase = team.finish_phase();
  engine.check(own);
  team.wait_for_phase(root, phase);
  if (!agreed) wrong_count("send_bytes", engine.rank(), bytes, root, block.bytes);
}

// ---- scatter

// True when all blocks fit the slot behind the table; they then lie there at their running sum.
bool fits_slot(const Engine& engine, const Blocks& blocks) {
  std::size_t total = 0;
  for (int peer = 0; peer < engine.size(); ++peer) {
    if (blocks.counts[peer] > node::Slot::payload_bytes) return false;
    total += blocks.counts[peer];
  }
  return table_at + engine.size() * sizeof(Block) + total <= node::Slot::payload_bytes;
}

void inline_blocks(Engine& engine, node::Slot& own, const std::byte* send, const Blocks& blocks) {
  std::size_t at = table_at + engine.size() * sizeof(Block);
  for (int peer = 0; peer < engine.size(); ++peer) {
    const Block block{at, blocks.counts[peer]};
    std::memcpy(own.payload + table_at + peer * sizeof block, &block, sizeof block);
    if (block.bytes > 0) {
      std::memcpy(own.payload + at, send + blocks.displacements[peer], block.bytes);
    }
    at += block.bytes;
  }
}

// Marks a root whose blocks lie in its slot; never an offset in an arena.
constexpr Reference inlined_reference = private_reference - 1;

void scatter_at_root(Engine& engine, node::Slot& own, const void* send, const Blocks& blocks,
                     void* receive) {
  const auto* source = static_cast<const std::byte*>(send);
  const bool inlined = fits_slot(engine, blocks);
  engine.path = inlined ? Path::inlined : Path::mapped;
  if (inlined) {
    const Shown mine{inlined_reference, private_reference, 0};
    std::memcpy(own.payload, &mine, sizeof mine);
    inline_blocks(engine, own, source, blocks);
  } else {
    std::size_t end = 0;
    for (int peer = 0; peer < engine.size(); ++peer) {
      end = std::max(end, blocks.displacements[peer] + blocks.counts[peer]);
    }
    write_table(engine, own, engine.show(send, end), blocks);
  }
  engine.team().arrive();
  const std::size_t bytes = blocks.counts[engine.rank()];
  const std::byte* own_block = source + blocks.displacements[engine.rank()];
  if (receive != nullptr && bytes > 0 && receive != own_block) {
    kernels::copy(receive, own_block, bytes, engine.stores(bytes));
  }
  const std::uint64_t phase = engine.team().finish_phase();
  if (inlined) return;
  for (int peer = 0; peer < engine.size(); ++peer) {
    if (peer != engine.rank()) engine.arrival(peer, own);
  }
  engine.check(own);  // a rank in another call finishes no phase of this one
  engine.team().wait_for_all(phase);
}

void scatter_at_receiver(Engine& engine, node::Slot& own, void* receive, std::size_t bytes,
                         int root) {
  engine.team().arrive();
  const node::Slot& slot = engine.arrival(root, own);
  const Shown shown = shown_of(slot);
  const Block block = block_of(slot, engine.rank());
  const bool agreed = slot.call == own.call && block.bytes == bytes;
  bool complete = true;
  engine.path = Path::inlined;
  if (agreed && shown.send == inlined_reference) {
    if (bytes > 0) std::memcpy(receive, slot.payload + block.offset, bytes);
  } else if (agreed) {
    engine.path = shown.private_send != 0 ? Path::cma : Path::mapped;
    complete = engine.read(receive, root, shown, block.offset, bytes, engine.stores(bytes));
  }
  engine.team().finish_phase();
  engine.check(own);
  if (!agreed) wrong_count("receive_bytes", engine.rank(), bytes, root, block.bytes);
  if (!complete) engine.throw_unreadable();
}

}  // namespace

void gather(Engine& engine, const void* send, std::size_t bytes, void* receive,
            const Blocks* blocks, int root) {
  const Scratch scratch(engine);
  node::Slot& own = engine.claim(Kind::gather, 0, 0, static_cast<std::uint32_t>(root));
  if (engine.rank() == root) {
    gather_at_root(engine, own, send, receive, *blocks);
  } else {
    gather_at_sender(engine, own, send, bytes, root);
  }
}

void scatter(Engine& engine, const void* send, const Blocks* blocks, void* receive,
             std::size_t bytes, int root) {
  const Scratch scratch(engine);
  node::Slot& own = engine.claim(Kind::scatter, 0, 0, static_cast<std::uint32_t>(root));
  if (engine.rank() == root) {
    scatter_at_root(engine, own, send, *blocks, receive);
  } else {
    scatter_at_receiver(engine, own, receive, bytes, root);
  }
}

}  // namespace ropewalk::collectives
