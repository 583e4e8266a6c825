// allgather(v): every rank copies every other's block into its own receive buffer. A block of
// private memory is written by its owner into the receive buffers that it sees.
#include <algorithm>
#include <cstring>
#include <numeric>

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

// Where the block of a rank begins in a buffer without gaps.
std::size_t dense_offset(const Blocks& blocks, int rank) {
  return std::accumulate(blocks.counts, blocks.counts + rank, std::size_t{0});
}

// Displacements are each rank's own, so the others find their places only where there are no gaps.
bool is_dense(const Blocks& blocks, int ranks) {
  std::size_t end = 0;
  for (int peer = 0; peer < ranks; ++peer) {
    if (blocks.counts[peer] > 0 && blocks.displacements[peer] != end) return false;
    end += blocks.counts[peer];
  }
  return true;
}

Shown show_buffers(Engine& engine, const void* send, void* receive, const Blocks& blocks,
                   std::size_t largest) {
  const std::size_t limit = engine.limits().piecewise_bytes;
  const std::size_t bytes = blocks.counts[engine.rank()];
  const std::size_t end = dense_offset(blocks, engine.size());
  Reference target = Reference::none();
  const bool pushed = largest >= engine.limits().pushed_bytes || end > limit;
  if (pushed && is_dense(blocks, engine.size())) target = engine.memory().visible(receive, end);
  // A rank that sees its own receive buffer expects that it sees those of the others.
  const bool postpones = target.is_visible() && bytes >= engine.limits().pushed_bytes;
  Shown mine = postpones ? engine.copies().postpone_in_pieces(send, bytes, limit)
                         : engine.copies().show_in_pieces(send, bytes, limit);
  mine.receive = target;
  return mine;
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
  const Shown mine = show_buffers(engine, send, receive, blocks, largest);
  const auto& shown = engine.meet(own, mine);
  const std::size_t place = dense_offset(blocks, engine.rank());
  bool complete = true;
  for (int step = 1; step < engine.size(); ++step) {
    const int peer = (engine.rank() + step) % engine.size();
    if (pushes(mine, shown[peer])) {
      complete &= engine.memory().write(peer, shown[peer].receive + place, send, bytes,
                                        engine.stores(largest));
    }
    if (pushes(shown[peer], mine)) continue;
    complete &= engine.copies().read(target + blocks.displacements[peer], peer, shown[peer], 0,
                                     blocks.counts[peer], engine.stores(largest));
    if (shown[peer].send.is_by_kernel()) engine.path = Path::cma;
  }
  copy_own(engine, send, target + blocks.displacements[engine.rank()], bytes);
  engine.leave(shown, complete);
}

}  // namespace ropewalk::collectives
