// This file decides, with all ranks of a communicator, which windows ropewalk serves, and makes
// them.
#include <cstring>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "collectives/backend.hpp"
#include "collectives/state.hpp"
#include "communicators.hpp"
#include "devices.hpp"
#include "ints.hpp"
#include "local_mpi.hpp"
#include "mpi/collectively.hpp"
#include "mpi/errors_returned.hpp"
#include "mpi/library.hpp"
#include "onesided.hpp"
#include "ropewalk/memory.hpp"
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

// What a rank tells the others of its memory in a window of MPI_Win_create.
struct ToldPart {
  std::uint64_t offset;  // in its arena
  Count bytes;
  Count unit;
};

// What a rank needs to serve a window, before the ranks agree.
struct Preparation {
  ReservedEntry entry;
  std::optional<ScatteredInfo> info;
  std::vector<ToldPart> told;  // by rank
  std::vector<WindowPart> parts;
  WindowEpochs::Peers peers;  // while they are kept their arenas stay mapped
};

// Whether others have mapped the program's memory: all of the arena.
bool is_mapped(const void* base, Count bytes) noexcept {
  if (bytes == 0) return true;
  return bytes > 0 && Arena::process().contains(base, static_cast<std::size_t>(bytes));
}

// Returns false where this rank cannot serve. Copies to and from the memory of devices are MPI's.
bool prepare(Preparation& own, const WindowRequest& request, mpi::Comm comm,
             const void* base) noexcept {
  try {
    if (!fits_int(request.unit) || !wanted() || !device_memory().empty()) return false;
    own.entry.reserve();
    if (request.kind == WindowKind::allocate) own.info.emplace(clean(request.info));
    if (request.kind != WindowKind::create) return true;
    if (!is_mapped(base, request.bytes) || !can_have_team(comm.value)) return false;
    own.told.resize(static_cast<std::size_t>(mpi::size(comm)));
    own.parts.resize(own.told.size());
    own.peers.resize(own.told.size());
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

// Collective. MPI makes a window by make(), or this returns false on all ranks, and no error is
// raised: there may be another way to make what the program wants.
template <class Make>
bool try_to(mpi::Comm comm, const Make& make) {
  int code = 0;
  {
    const mpi::ErrorsReturned here(comm);
    code = make();
  }
  // Where some ranks alone have it, it stays for ever: MPI_Win_free would wait for the others.
  return all_are(code == 0, comm);
}
bool try_allocate(mpi::Comm comm, const WindowRequest& request, Word info, void* base,
                  void* window) {
  return try_to(comm, [&] {
    return next.Win_allocate_shared(request.bytes, static_cast<int>(request.unit), info,
                                    request.comm, base, window);
  });
}

// Collective. Rank 0 gives the memory, all zeros; the others give none.
std::optional<Word> try_make_control(mpi::Comm comm) {
  const std::size_t board = WindowBoard::bytes(static_cast<std::size_t>(mpi::size(comm)));
  const std::size_t bytes = mpi::rank(comm) == 0 ? board + alignof(WindowDesk) : 0;
  const Word no_hints = mpi::library().abi.info_null;
  void* base = nullptr;
  Word window = 0;
  const bool made = try_to(comm, [&] {
    return next.Win_allocate_shared(static_cast<Count>(bytes), 1, no_hints, comm.value, &base,
                                    &window);
  });
  if (!made) return std::nullopt;
  if (bytes != 0) std::memset(base, 0, bytes);
  return window;
}

// Collective. From now on ropewalk serves the window, unless a rank lacks memory for that.
bool serve(mpi::Comm comm, Word window, WindowKind kind, Preparation& own) {
  const std::optional<Word> control = try_make_control(comm);
  if (!control) return false;
  bool filled = false;
  try {
    const WindowRanks& ranks = window_ranks(comm);
    if (own.parts.empty()) {
      own.parts = parts_of_shared(window, mpi::size(comm));
      own.peers = ranks.processes;
    }
    own.entry.fill(std::make_unique<ServedWindow>(window, *control, kind, comm, ranks.crowded,
                                                  std::move(own.parts), std::move(own.peers)));
    filled = true;
  } catch (...) {  // no memory
  }
  if (!all_are(filled, comm)) {  // behind which the zeros of the board are there, too
    free_window(*control);
    return false;
  }
  own.entry.publish();
  return true;
}

bool make_shared(mpi::Comm comm, const WindowRequest& request, Preparation& own, void* base,
                 void* window) {
  const Word info = own.info ? own.info->word() : request.info;
  return try_allocate(comm, request, info, base, window);
}

// Finds the memory of all ranks, by the arenas that the communicator's team has mapped.
bool make_over_memory(mpi::Comm comm, const WindowRequest& request, Preparation& own, void* base,
                      void* window) {
  const CommunicatorEntry* entry = entry_with_team(comm.value);
  if (entry == nullptr || entry->team == nullptr) return false;
  collectives::Engine* engine = entry->team->state().backend->engine();
  if (engine == nullptr || engine->size() != mpi::size(comm)) return false;
  ToldPart told{0, request.bytes, request.unit};
  // The arena hears that the memory is communicated.
  const auto bytes = static_cast<std::size_t>(request.bytes);
  if (bytes != 0) told.offset = engine->memory().visible(base, bytes).place();
  mpi::all_gather(&told, own.told.data(), sizeof told, comm);
  for (std::size_t rank = 0; rank < own.told.size(); ++rank) {
    const ToldPart& part = own.told[rank];
    own.peers[rank] = engine->team().peer(static_cast<int>(rank)).shared_from_this();
    const std::byte* place = engine->team().base(static_cast<int>(rank)) + part.offset;
    own.parts[rank] = {mpi::address(place), part.bytes, part.unit};
  }
  return try_to(comm, [&] {
    return next.Win_create(base, request.bytes, static_cast<int>(request.unit), request.info,
                           request.comm, window);
  });
}

bool make_agreed(mpi::Comm comm, const WindowRequest& request, Preparation& own, void* base,
                 void* window) {
  const bool made = request.kind == WindowKind::create
                        ? make_over_memory(comm, request, own, base, window)
                        : make_shared(comm, request, own, base, window);
  if (!made) return false;
  if (serve(comm, handle_at(window), request.kind, own)) return true;
  free_window(handle_at(window));
  return false;
}

}  // namespace

bool make(const WindowRequest& request, void* base, void* window) noexcept {
  try {
    const mpi::Comm comm{clean(request.comm)};
    if (!is_valid(comm)) return false;
    Preparation own;
    const bool able = prepare(own, request, comm, base);
    return all_are(able, comm) && window_ranks(comm).share_node &&
           make_agreed(comm, request, own, base, window);
  } catch (...) {  // a communicator that MPI refuses, or settings that differ: all ranks see it
    return false;
  }
}

}  // namespace ropewalk::preload::onesided
