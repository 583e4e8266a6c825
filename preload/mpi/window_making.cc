// This file decides, with all ranks of a communicator, which windows ropewalk serves, and makes
// them.
#include <cstring>
#include <memory>

#include "local_mpi.hpp"
#include "mpi/collectively.hpp"
#include "mpi/library.hpp"
#include "node/machine_share.hpp"
#include "node/rank_nodes.hpp"
#include "onesided.hpp"
#include "window_peers.hpp"

namespace ropewalk::preload::onesided {
namespace {

// Open MPI 4.1 refuses some windows of shared memory of one rank, which has nobody to wait for.
bool is_valid(mpi::Comm comm) {
  if (!mpi::initialized() || mpi::finalized() || comm == mpi::comm_null()) return false;
  return !mpi::is_inter(comm) && mpi::size(comm) > 1 && in_this_world(comm);
}

// By MPI, which must map the memory, and by ROPEWALK_NODES.
bool share_node(mpi::Comm comm) {
  for (const int node : node::nodes_of_ranks(comm)) {
    if (node != 0) return false;
  }
  mpi::Comm near = mpi::split_shared(comm);
  const bool all = mpi::size(near) == mpi::size(comm);
  mpi::free(near);
  return all;
}

Word handle_at(const void* place) {
  Word handle = 0;
  std::memcpy(&handle, place, handle_bits == ~Word{0} ? sizeof handle : 4);
  return handle;
}

// Collective. Rank 0 gives the memory, all zeros; the others give none.
Word make_control(mpi::Comm comm) {
  const auto ranks = static_cast<std::size_t>(mpi::size(comm));
  const std::size_t bytes = WindowBoard::bytes(ranks) + alignof(WindowDesk);
  const bool gives = mpi::rank(comm) == 0;
  mpi::meet(comm);
  void* base = nullptr;
  Word window = 0;
  mpi::check(next.Win_allocate_shared(gives ? static_cast<Count>(bytes) : 0, 1,
                                      mpi::library().abi.info_null, comm.value, &base, &window),
             "MPI_Win_allocate_shared");
  if (gives) std::memset(base, 0, bytes);
  return window;
}

// Collective. What fails on one rank fails on all; the window is then MPI's.
void serve(Word window, const WindowRequest& request) {
  const mpi::Comm comm{clean(request.comm)};
  ReservedEntry entry;
  mpi::collectively(comm, [&] {
    entry.reserve();
    const bool crowded = node::crowding(comm, mpi::size(comm)).here;
    const Word control = make_control(comm);
    entry.fill(std::make_unique<ServedWindow>(window, control, comm, request.shared, crowded,
                                              processes_of(comm)));
    mpi::barrier(comm);  // the zeros are there
  });
  entry.publish();
}

int allocate(const WindowRequest& request, void* base, void* window) {
  if (request.shared) {
    return next.Win_allocate_shared(request.bytes, request.unit, request.info, request.comm, base,
                                    window);
  }
  const ScatteredInfo info(clean(request.info));
  return next.Win_allocate_shared(request.bytes, request.unit, info.word(), request.comm, base,
                                  window);
}

}  // namespace

bool agreed(Word word, bool able) noexcept {
  try {
    const mpi::Comm comm{clean(word)};
    if (!is_valid(comm)) return false;
    std::int64_t all = able && wanted() ? 1 : 0;
    mpi::all_reduce(std::span(&all, 1), mpi::Combine::min, comm);
    return all == 1 && share_node(comm);
  } catch (...) {  // a communicator that MPI refuses, or settings that differ: all ranks see it
    return false;
  }
}

int make(const WindowRequest& request, void* base, void* window) noexcept {
  int code = 0;
  try {
    code = allocate(request, base, window);
    if (code == 0) serve(handle_at(window), request);
  } catch (...) {  // the window is MPI's, which serves it
  }
  return code;
}

}  // namespace ropewalk::preload::onesided
