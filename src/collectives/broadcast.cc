// This file has broadcast and barrier.
//
// A small broadcast goes through the root's slot, and the root does not wait. A large one between
// mapped buffers is shared out: rank i copies slice i of the root's buffer into all others', so
// with two ranks both cores copy. A private root's data goes through its staging area; private
// receivers pull.
#include <algorithm>
#include <cstring>

#include "collectives/algorithms.hpp"

namespace ropewalk::collectives {
namespace {

constexpr std::size_t page_bytes = 4096;  // slices end on borders of small pages

void push_slices(Engine& engine, const std::vector<Shown>& shown, std::size_t bytes, int root) {
  const Range part = slice(bytes, engine.rank(), engine.size(), page_bytes);
  const std::byte* from = engine.resolve(root, shown[root].send, bytes) + part.begin;
  // Every rank starts with another output, so that not all write to one rank's memory at once.
  for (int step = 0; step < engine.size(); ++step) {
    const int peer = (engine.rank() + step) % engine.size();
    if (peer == root) continue;
    kernels::copy(engine.resolve(peer, shown[peer].receive, bytes) + part.begin, from,
                  part.length(), engine.stores(bytes));
  }
  engine.leave();
}

// Whether the root sees the buffer of the only receiver, which has come already or does so soon. A
// root of several writes one copy in less time, from which all of them read at once.
bool sees_receiver(Engine& engine, const node::Slot& own, std::size_t bytes, Shown& receiver) {
  // As in gather.cc: 16 KiB take 1.5 times as long when the root looks for its receiver.
  if (engine.size() > 2 || bytes < 2 * engine.limits().pushed_bytes) return false;
  const node::Slot* slot = engine.arrivals().soon(1 - engine.rank(), own, bytes);
  if (slot == nullptr) return false;
  std::memcpy(&receiver, slot->payload, sizeof receiver);
  return receiver.receive.is_visible();
}

// The root writes into the buffer of the receiver, which waits for this phase of the root alone.
void push_whole(Engine& engine, const void* data, std::size_t bytes, int root,
                const Shown& receiver) {
  node::Phases& phases = engine.team().phases();
  std::uint64_t phase = 0;
  engine.path = Path::mapped;
  if (engine.rank() == root) {
    const bool complete =
        engine.memory().write(1 - root, receiver.receive, data, bytes, kernels::Stores::temporal);
    phase = complete ? phases.finish() : phases.fail();
  } else {
    phase = phases.skip();
    phases.wait_for(root, phase);
  }
  engine.duties().check_complete(phase);
}

// Copies a private root's buffer piece by piece, so that the root does not wait. Returns true when
// the call is done.
bool copied_broadcast(Engine& engine, node::Slot& own, void* data, std::size_t bytes, int root) {
  const Reference visible = engine.memory().visible(data, bytes);
  Shown mine{visible, visible};
  Shown receiver;
  if (engine.rank() == root && visible.is_none()) {
    mine = sees_receiver(engine, own, bytes, receiver)
               ? Shown{pushed_reference}
               : engine.copies().copy_in_pieces(data, bytes, engine.limits().piecewise_bytes);
  }
  std::memcpy(own.payload, &mine, sizeof mine);
  engine.team().slots().arrive();
  engine.copies().add_rest();
  Shown at_root = mine;
  if (engine.rank() != root) {
    const node::Slot& slot = engine.arrivals().of(root, own);
    engine.arrivals().check(own);
    std::memcpy(&at_root, slot.payload, sizeof at_root);
  }
  if (at_root.send == pushed_reference) {
    push_whole(engine, data, bytes, root, receiver);
    return true;
  }
  if (at_root.copied == 0) return false;
  engine.path = Path::staged;
  engine.team().phases().skip();
  if (engine.rank() != root) {
    engine.copies().read(data, root, at_root, 0, bytes, kernels::Stores::temporal);
  }
  return true;
}

void large_broadcast(Engine& engine, node::Slot& own, void* data, std::size_t bytes, int root) {
  const bool small = bytes <= engine.limits().piecewise_bytes;
  if (small && copied_broadcast(engine, own, data, bytes, root)) return;
  const auto show = [&] {
    const Reference buffer = engine.memory().reachable(data, bytes);
    return Shown{buffer, buffer};
  };
  const auto& shown = small ? engine.collect(own) : engine.meet(own, show());
  const bool receivers_mapped =
      std::ranges::all_of(shown, [](const Shown& rank) { return rank.receive.is_visible(); });
  if (receivers_mapped) {
    engine.path = Path::mapped;
    push_slices(engine, shown, bytes, root);
  } else if (shown[root].send.is_visible()) {
    engine.path = Path::mapped;
    const bool complete =
        engine.rank() == root ||
        engine.copies().read(data, root, shown[root], 0, bytes, engine.stores(bytes));
    engine.leave(complete);
  } else if (reaches_all(shown, -1)) {
    engine.path = Path::cma;
    cma_broadcast(engine, shown, data, bytes, root);
  } else {
    engine.path = Path::staged;
    staged_broadcast(engine, data, bytes, root);
  }
}

}  // namespace

void broadcast(Engine& engine, void* data, std::size_t bytes, int root) {
  node::Slot& own =
      engine.arrivals().claim(Kind::broadcast, bytes, 0, static_cast<std::uint32_t>(root));
  if (bytes > engine.limits().rooted_bytes) {
    large_broadcast(engine, own, data, bytes, root);
    return;
  }
  engine.path = Path::inlined;
  if (engine.rank() == root) {
    std::memcpy(own.place(bytes), data, bytes);
    engine.team().slots().arrive(bytes);
    return;
  }
  engine.team().slots().arrive();
  const node::Slot& slot = engine.arrivals().of(root, own);
  engine.arrivals().check(own);
  std::memcpy(data, slot.place(bytes), bytes);
}

void barrier(Engine& engine) {
  engine.path = Path::inlined;
  node::Slot& own = engine.arrivals().claim(Kind::barrier, 0);
  engine.team().slots().arrive();
  engine.arrivals().wait_for_all(own);
}

}  // namespace ropewalk::collectives
