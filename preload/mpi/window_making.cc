// This file decides, with all ranks of a communicator, which windows ropewalk serves, and makes
// them.
#include <cstring>
#include <memory>
#include <optional>
#include <span>

#include "devices.hpp"
#include "local_mpi.hpp"
#include "mpi/collectively.hpp"
#include "mpi/errors_returned.hpp"
#include "mpi/library.hpp"
#include "onesided.hpp"
#include "window_ranks.hpp"

namespace ropewalk::preload::onesided {
namespace {

// Open MPI 4.1 refuses some windows of shared memory of one rank, which has nobody to wait for.
bool is_valid(mpi::Comm comm) {
  if (!mpi::initialized() || mpi::finalized() || comm == mpi::comm_null()) return false;
  return !mpi::is_inter(comm) && mpi::size(comm) > 1 && in_this_world(comm);
}

Word handle_at(const void* place) {
  Word handle = 0;
  std::memcpy(&handle, place, handle_bits == ~Word{0} ? sizeof handle : 4);
  return handle;
}

// What a rank needs to serve a window, before the ranks agree.
struct Preparation {
  ReservedEntry entry;
  std::optional<ScatteredInfo> info;
};

// Returns false where this rank cannot serve. Copies to and from the memory of devices are MPI's.
bool prepare(Preparation& own, const WindowRequest& request) noexcept {
  try {
    if (!fits_int(request.unit) || !wanted() || !device_memory().empty()) return false;
    own.entry.reserve();
    if (!request.shared) own.info.emplace(clean(request.info));
    return true;
  } catch (...) {
    return false;
  }
}

bool all_are(bool able, mpi::Comm comm) {
  std::int64_t all = able ? 1 : 0;
  mpi::all_reduce(std::span(&all, 1), mpi::Combine::min, comm);
  return all == 1;
}

// Collective. MPI makes a window of shared memory, or returns false on all ranks, and raises no
// error: it may have another way to make what the program wants.
bool try_allocate(mpi::Comm comm, const WindowRequest& request, void* base, void* window) {
  int code = 0;
  {
    const mpi::ErrorsReturned here(comm);
    code = next.Win_allocate_shared(request.bytes, static_cast<int>(request.unit), request.info,
                                    request.comm, base, window);
  }
  // Where some ranks alone have it, it stays for ever: MPI_Win_free would wait for the others.
  return all_are(code == 0, comm);
}

// Collective. Rank 0 gives the memory, all zeros; the others give none.
std::optional<Word> try_make_control(mpi::Comm comm) {
  const std::size_t board = WindowBoard::bytes(static_cast<std::size_t>(mpi::size(comm)));
  const std::size_t bytes = mpi::rank(comm) == 0 ? board + alignof(WindowDesk) : 0;
  const Word no_hints = mpi::library().abi.info_null;
  void* base = nullptr;
  Word window = 0;
  if (!try_allocate(comm, {static_cast<Count>(bytes), 1, no_hints, comm.value, true}, &base,
                    &window)) {
    return std::nullopt;
  }
  if (bytes != 0) std::memset(base, 0, bytes);
  return window;
}

// Collective. From now on ropewalk serves the window, unless a rank lacks memory for that.
bool serve(mpi::Comm comm, Word window, bool shared, ReservedEntry& entry) {
  const std::optional<Word> control = try_make_control(comm);
  if (!control) return false;
  bool filled = false;
  try {
    const WindowRanks& ranks = window_ranks(comm);
    entry.fill(std::make_unique<ServedWindow>(window, *control, comm, shared, ranks.crowded,
                                              ranks.processes));
    filled = true;
  } catch (...) {  // no memory
  }
  if (!all_are(filled, comm)) {  // behind which the zeros of the board are there, too
    free_window(*control);
    return false;
  }
  entry.publish();
  return true;
}

bool make_agreed(const WindowRequest& request, Preparation& own, void* base, void* window) {
  const mpi::Comm comm{clean(request.comm)};
  WindowRequest made = request;
  if (own.info) made.info = own.info->word();
  if (!try_allocate(comm, made, base, window)) return false;
  if (serve(comm, handle_at(window), request.shared, own.entry)) return true;
  free_window(handle_at(window));
  return false;
}

}  // namespace

bool make(const WindowRequest& request, void* base, void* window) noexcept {
  try {
    const mpi::Comm comm{clean(request.comm)};
    if (!is_valid(comm)) return false;
    Preparation own;
    const bool able = prepare(own, request);
    return all_are(able, comm) && window_ranks(comm).share_node &&
           make_agreed(request, own, base, window);
  } catch (...) {  // a communicator that MPI refuses, or settings that differ: all ranks see it
    return false;
  }
}

}  // namespace ropewalk::preload::onesided
