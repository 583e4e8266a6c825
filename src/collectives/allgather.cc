// allgather(v): every rank copies every other's block into its own receive buffer.
#include <algorithm>
#include <cstring>

#include "collectives/algorithms.hpp"
#include "os/hash.hpp"

namespace ropewalk::collectives {
namespace {

void copy_own(Engine& engine, const void* send, std::byte* target, std::size_t bytes) {
  if (bytes > 0 && target != send) kernels::copy(target, send, bytes, engine.stores(bytes));
}

// All ranks must agree on all counts.
std::uint32_t form_of(Engine& engine, const Blocks& blocks) {
  return os::hash_counts(blocks.counts, engine.size());
}

}  // namespace

void allgather(Engine& engine, const void* send, void* receive, const Blocks& blocks) {
  std::size_t largest = 0;
  for (int peer = 0; peer < engine.size(); ++peer) {
    largest = std::max(largest, blocks.counts[peer]);
  }
  auto* target = static_cast<std::byte*>(receive);
  const std::size_t bytes = blocks.counts[engine.rank()];
  const Scratch scratch(engine);
  node::Slot& own = engine.arrivals().claim(Kind::allgather, largest, 0, form_of(engine, blocks));
  if (largest <= engine.limits().gathered_bytes) {
    engine.path = Path::inlined;
    if (bytes > 0) std::memcpy(own.place(bytes), send, bytes);
    engine.team().slots().arrive(bytes);
    engine.arrivals().wait_for_all(own);
    for (int peer = 0; peer < engine.size(); ++peer) {
      if (peer == engine.rank() || blocks.counts[peer] == 0) continue;
      std::memcpy(target + blocks.displacements[peer],
                  engine.arrivals().of(peer, own).place(blocks.counts[peer]), blocks.counts[peer]);
    }
    copy_own(engine, send, target + blocks.displacements[engine.rank()], bytes);
    return;
  }
  engine.path = Path::mapped;
  const auto& shown = engine.meet(
      own, engine.copies().show_in_pieces(send, bytes, engine.limits().piecewise_bytes));
  bool complete = true;
  for (int step = 1; step < engine.size(); ++step) {
    const int peer = (engine.rank() + step) % engine.size();
    complete &= engine.copies().read(target + blocks.displacements[peer], peer, shown[peer], 0,
                                     blocks.counts[peer], engine.stores(largest));
    if (shown[peer].send.is_by_kernel()) engine.path = Path::cma;
  }
  copy_own(engine, send, target + blocks.displacements[engine.rank()], bytes);
  engine.leave(shown, complete);
}

}  // namespace ropewalk::collectives
