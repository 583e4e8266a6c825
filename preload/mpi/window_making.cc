// This file decides, with all ranks of a communicator, which windows ropewalk serves, and makes
// them.
#include <sys/statvfs.h>

#include <cstdint>
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
  std::uint64_t area;  // of its SharedArea; `lacking` where it has no memory for one
};
constexpr std::uint64_t lacking = UINT64_MAX;

// What a rank needs to serve a window, before the ranks agree.
struct Preparation {
  ReservedEntry entry;
  std::optional<mpi::ErrorsReturned> guard;  // this may fail, and so is not left for later
  std::optional<ScatteredInfo> info;
  std::vector<ToldPart> told;  // by rank
  std::vector<std::uint64_t> areas;
  WindowPlaces places;
};

// Whether others have mapped the program's memory: all of the arena.
bool is_mapped(const void* base, Count bytes) {
  return bytes == 0 || Arena::process().contains(base, static_cast<std::size_t>(bytes));
}

// Returns false where this rank cannot serve. Copies to and from the memory of devices are MPI's,
// and so is the error about an argument.
bool prepare(Preparation& own, const WindowRequest& request, mpi::Comm comm,
             const void* base) noexcept {
  try {
    const bool valid = request.bytes >= 0 && request.unit > 0 && fits_int(request.unit);
    if (!valid || !wanted() || !device_memory().empty()) return false;
    own.places.kind = request.kind;
    own.entry.reserve();
    if (request.kind == WindowKind::allocate) own.info.emplace(clean(request.info));
    if (request.kind == WindowKind::create) {
      if (!is_mapped(base, request.bytes) || !can_have_team(comm.value)) return false;
      own.told.resize(static_cast<std::size_t>(mpi::size(comm)));
      own.areas.resize(own.told.size());
      own.places.parts.resize(own.told.size());
      own.places.peers.resize(own.told.size());
    }
    own.guard.emplace(comm);
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

// ---- windows whose memory MPI gives

// Collective. Whether there is room for shared memory of so many bytes of each rank. Where it
// lacks, rank 0 of Open MPI alone finds an error, while the others wait for it, and MPICH's memory
// cannot be written. Open MPI wants a twentieth more than it takes.
bool have_room(mpi::Comm comm, Count bytes) {
  std::int64_t all = bytes + Count{3} * 4096;  // parts begin on pages
  mpi::all_reduce(std::span(&all, 1), mpi::Combine::sum, comm);
  struct statvfs folder {};
  constexpr std::uint64_t more = std::uint64_t{1} << 20;  // for what ranks tell each other, and MPI
  const auto wanted = static_cast<std::uint64_t>(all) / 20 * 21 + more;
  const bool known = statvfs("/dev/shm", &folder) == 0;
  return all_are(!known || folder.f_bavail * folder.f_frsize >= wanted, comm);
}

// Collective. MPI makes a window of shared memory, or this returns false on all ranks, and no error
// is raised: MPI may have another way to make what the program wants.
bool try_allocate(mpi::Comm comm, const WindowRequest& request, Word info, void* base,
                  void* window) {
  const int code = next.Win_allocate_shared(request.bytes, static_cast<int>(request.unit), info,
                                            request.comm, base, window);
  // Where some ranks alone have it, it stays for ever: MPI_Win_free would wait for the others.
  return all_are(code == 0, comm);
}

// Collective. Rank 0 gives the memory of the board, all zeros; the others give none.
bool try_make_control(mpi::Comm comm, WindowPlaces& places) {
  const std::size_t board = WindowBoard::bytes(static_cast<std::size_t>(mpi::size(comm)));
  const bool gives = mpi::rank(comm) == 0;
  const std::size_t bytes = gives ? board + alignof(WindowDesk) : 0;
  const Word no_hints = mpi::library().abi.info_null;
  void* base = nullptr;
  Word window = 0;
  const WindowRequest request{static_cast<Count>(bytes), 1, no_hints, comm.value, places.kind};
  if (!try_allocate(comm, request, no_hints, &base, &window)) return false;
  if (gives) std::memset(base, 0, bytes);
  places.control = window;
  return true;
}

// Finds the memory of all ranks in a window that MPI has made.
void find_shared(const WindowRanks& ranks, Word window, WindowPlaces& places) {
  const auto size = ranks.processes.size();
  places.parts = parts_of_shared(window, static_cast<int>(size));
  places.peers = ranks.processes;
  places.board = board_of(*places.control, size);
}

bool make_shared(mpi::Comm comm, const WindowRequest& request, Preparation& own, void* base,
                 void* window) {
  if (!have_room(comm, request.bytes)) return false;
  const Word info = own.info ? own.info->word() : request.info;
  if (!try_allocate(comm, request, info, base, window)) return false;
  if (try_make_control(comm, own.places)) return true;
  free_window(handle_at(window));
  return false;
}

// ---- windows over memory of the program

// Tells the others where this rank's part lies, and its area; rank 0's is the board.
ToldPart told_of(Collectives& team, const WindowRequest& request, const void* base,
                 WindowPlaces& places) noexcept {
  ToldPart told{0, request.bytes, request.unit, lacking};
  const auto bytes = static_cast<std::size_t>(request.bytes);
  try {
    Arena& arena = Arena::process();
    if (bytes != 0) told.offset = arena.offset(base);
    if (bytes != 0) arena.note_communicated(base, bytes);
    const auto ranks = static_cast<std::size_t>(team.size());
    const std::size_t board = team.rank() == 0 ? WindowBoard::bytes(ranks) : 0;
    places.area = std::make_unique<SharedArea>(team, board);
    std::memset(places.area->own(), 0, board);
    told.area = places.area->offset();
  } catch (...) {  // no memory
  }
  return told;
}

// Finds the memory of all ranks, by the arenas that the team has mapped; false where one lacks it.
bool find_told(node::Team& team, Preparation& own) {
  WindowPlaces& places = own.places;
  for (std::size_t rank = 0; rank < own.told.size(); ++rank) {
    const ToldPart& part = own.told[rank];
    if (part.area == lacking) return false;
    const auto peer = static_cast<int>(rank);
    places.peers[rank] = team.peer(peer).shared_from_this();
    places.parts[rank] = {mpi::address(team.base(peer) + part.offset), part.bytes, part.unit};
    own.areas[rank] = part.area;
  }
  places.area->connect(own.areas);
  places.area->share();
  places.board = WindowBoard(places.area->of(0), own.told.size());
  return true;
}

bool make_over_memory(mpi::Comm comm, const WindowRequest& request, Preparation& own, void* base,
                      void* window) {
  const CommunicatorEntry* entry = entry_with_team(comm.value);
  if (entry == nullptr || entry->team == nullptr) return false;
  collectives::Engine* engine = entry->team->state().backend->engine();
  if (engine == nullptr || engine->size() != mpi::size(comm)) return false;
  const ToldPart told = told_of(*entry->team, request, base, own.places);
  mpi::all_gather(&told, own.told.data(), sizeof told, comm);
  if (!find_told(engine->team(), own)) return false;
  const int code = next.Win_create(base, request.bytes, static_cast<int>(request.unit),
                                   request.info, request.comm, window);
  return all_are(code == 0, comm);
}

// ---- all of them

// Returns false where this rank lacks memory.
bool fill(Preparation& own, const WindowRanks& ranks, mpi::Comm comm, Word window) noexcept {
  try {
    if (own.places.kind != WindowKind::create) find_shared(ranks, window, own.places);
    own.entry.fill(
        std::make_unique<ServedWindow>(window, comm, ranks.crowded, std::move(own.places)));
    return true;
  } catch (...) {
    return false;
  }
}

bool make_agreed(mpi::Comm comm, const WindowRequest& request, Preparation& own, void* base,
                 void* window) {
  const WindowRanks& ranks = window_ranks(comm);
  if (!ranks.share_node) return false;
  const bool made = request.kind == WindowKind::create
                        ? make_over_memory(comm, request, own, base, window)
                        : make_shared(comm, request, own, base, window);
  if (!made) return false;
  const std::optional<Word> control = own.places.control;
  const Word handle = handle_at(window);
  if (all_are(fill(own, ranks, comm, handle), comm)) {  // behind which the board's zeros are there
    own.entry.publish();
    return true;
  }
  if (control) free_window(*control);
  free_window(handle);
  return false;
}

}  // namespace

bool make(const WindowRequest& request, void* base, void* window) noexcept {
  try {
    const mpi::Comm comm{clean(request.comm)};
    if (!is_valid(comm)) return false;
    Preparation own;
    const bool able = prepare(own, request, comm, base);
    return all_are(able, comm) && make_agreed(comm, request, own, base, window);
  } catch (...) {  // a communicator that MPI refuses, or settings that differ: all ranks see it
    return false;
  }
}

}  // namespace ropewalk::preload::onesided
