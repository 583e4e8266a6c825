// This file decides, with all ranks of a communicator, which windows ropewalk serves, and makes
// them.
#include <sys/statvfs.h>

#include <array>
#include <cstdint>
#include <cstring>
#include <memory>
#include <optional>
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
#include "node/waits.hpp"
#include "onesided.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/memory.hpp"
#include "shared_area.hpp"

namespace ropewalk::preload::onesided {
namespace {

Word handle_at(const void* place) {
  Word handle = 0;
  std::memcpy(&handle, place, handle_bits == ~Word{0} ? sizeof handle : 4);
  return handle;
}

// What a rank tells the others of its memory before MPI makes the window.
struct Offer {
  Count bytes = 0;
  Count unit = 1;
  std::uint64_t offset = 0;  // in its arena; only for MPI_Win_create
  std::uint64_t area = 0;    // of its SharedArea; rank 0's is the board
};

// What a rank needs to serve a window. What may fail is taken before the ranks agree.
struct Preparation {
  ReservedEntry entry;
  std::optional<mpi::ErrorsReturned> guard;
  std::optional<ScatteredInfo> info;
  Offer offer;
  std::vector<Offer> offers;  // by rank
  std::vector<std::uint64_t> areas;
  WindowPlaces places;
};

// Whether others have mapped the program's memory: all of the arena.
bool is_mapped(const void* base, Count bytes) {
  return bytes == 0 || Arena::process().contains(base, static_cast<std::size_t>(bytes));
}

// Bytes that shared memory of the MPI has left; as many as there can be where nobody knows.
Count room_for_shared() noexcept {
  struct statvfs folder {};
  if (statvfs("/dev/shm", &folder) != 0) return INT64_MAX;
  return static_cast<Count>(folder.f_bavail * folder.f_frsize);
}

// Takes what the ranks need to tell each other of the window.
void take_memory(Preparation& own, const WindowRequest& request, Collectives& team,
                 const void* base) {
  const auto ranks = static_cast<std::size_t>(team.size());
  own.offers.resize(ranks);
  own.areas.resize(ranks);
  own.places.parts.resize(ranks);
  own.places.peers.resize(ranks);
  const std::size_t board = team.rank() == 0 ? WindowBoard::bytes(ranks) : 0;
  own.places.area = std::make_unique<SharedArea>(team, board);
  std::memset(own.places.area->own(), 0, board);
  own.offer = {request.bytes, request.unit, 0, own.places.area->offset()};
  if (request.kind != WindowKind::create || request.bytes == 0) return;
  own.offer.offset = Arena::process().offset(base);
  Arena::process().note_communicated(base, static_cast<std::size_t>(request.bytes));
}

// Returns false where this rank cannot serve. Copies to and from the memory of devices are MPI's,
// and so is the error about an argument.
bool prepare(Preparation& own, const WindowRequest& request, Collectives& team,
             const void* base) noexcept {
  try {
    const bool valid = request.bytes >= 0 && request.unit > 0 && fits_int(request.unit);
    if (!valid || !wanted() || !device_memory().empty()) return false;
    if (request.kind == WindowKind::create && !is_mapped(base, request.bytes)) return false;
    own.places.kind = request.kind;
    own.entry.reserve();
    if (request.kind == WindowKind::allocate) own.info.emplace(clean(request.info));
    take_memory(own, request, team, base);
    own.guard.emplace(mpi::Comm{clean(request.comm)});
    return true;
  } catch (...) {  // no memory
    return false;
  }
}

// Collective. Takes of each value the least over the ranks.
template <std::size_t Count>
void least(Collectives& team, std::array<std::int64_t, Count>& values) {
  team.allreduce(in_place, values.data(), Count, element_type<std::int64_t>(), ReductionOp::min);
}

// Whether so much room is enough for the shared memory of all ranks. Where it lacks, rank 0 of Open
// MPI alone finds an error, while the others wait for it, and MPICH's memory cannot be written.
// Open MPI wants a twentieth more than it takes.
bool suffices(Count room, const std::vector<Offer>& offers) noexcept {
  Count all = Count{1} << 20;  // for what ranks tell each other, and MPI
  for (const Offer& offer : offers) {
    constexpr Count grain = Count{3} * 4096;  // parts begin on pages
    if (offer.bytes > room || all > room) return false;
    all += (offer.bytes + grain) / 20 * 21;
  }
  return all <= room;
}

// Collective. All ranks tell each other whether they can serve, then what they offer.
bool agree(Collectives& team, bool able, WindowKind kind, Preparation& own) {
  const bool shared = kind != WindowKind::create;
  std::array<std::int64_t, 2> all{able ? 1 : 0, shared ? room_for_shared() : 0};
  least(team, all);
  if (all[0] == 0) return false;
  team.allgather(&own.offer, own.offers.data(), sizeof own.offer);
  return !shared || suffices(all[1], own.offers);
}

// Finds the ranks' processes and the board, by the arenas that the team has mapped, and where the
// memory is the program's, that too.
void connect(Preparation& own, node::Team& team) noexcept {
  WindowPlaces& places = own.places;
  for (std::size_t rank = 0; rank < own.offers.size(); ++rank) {
    const Offer& offer = own.offers[rank];
    const auto peer = static_cast<int>(rank);
    places.peers[rank] = team.peer(peer).shared_from_this();
    places.parts[rank] = {mpi::address(team.base(peer) + offer.offset), offer.bytes, offer.unit};
    own.areas[rank] = offer.area;
  }
  places.area->connect(own.areas);
  places.area->share();
  places.board = WindowBoard(places.area->of(0), own.offers.size());
}

// Collective. No error is raised where MPI refuses shared memory: it may have another way to make
// what the program wants.
int make_by_mpi(const WindowRequest& request, const Preparation& own, void* base, void* window) {
  const int unit = static_cast<int>(request.unit);
  if (request.kind == WindowKind::create) {
    return next.Win_create(base, request.bytes, unit, request.info, request.comm, window);
  }
  const Word info = own.info ? own.info->word() : request.info;
  return next.Win_allocate_shared(request.bytes, unit, info, request.comm, base, window);
}

// Returns false where this rank lacks memory.
bool fill(Preparation& own, mpi::Comm comm, Word window, bool crowded) noexcept {
  try {
    if (own.places.kind != WindowKind::create) {
      own.places.parts = parts_of_shared(window, mpi::size(comm));
    }
    own.entry.fill(std::make_unique<ServedWindow>(window, comm, crowded, std::move(own.places)));
    return true;
  } catch (...) {
    return false;
  }
}

bool make_agreed(Collectives& team, const WindowRequest& request, Preparation& own, void* base,
                 void* window) {
  const mpi::Comm comm{clean(request.comm)};
  node::Team& node = team.state().backend->engine()->team();
  connect(own, node);
  const bool made = make_by_mpi(request, own, base, window) == 0;
  const bool filled = made && fill(own, comm, handle_at(window), node.waits().crowded());
  // Behind this the board's zeros are there for all ranks.
  std::array<std::int64_t, 2> good{made ? 1 : 0, filled ? 1 : 0};
  least(team, good);
  if (good[1] == 1) {
    own.entry.publish();
    return true;
  }
  // Where some ranks alone have it, it stays for ever: MPI_Win_free would wait for the others.
  if (good[0] == 1) free_window(handle_at(window));
  return false;
}

// ---- communicators

// Collective. A communicator with a team whose ranks are all on one node; null on all ranks where
// it is none. The team is made here if there is none yet.
CommunicatorEntry* team_on_node(mpi::Comm comm) {
  CommunicatorEntry* entry = entry_as_it_is(comm.value);
  // All ranks but those without memory for the entry are in the same state.
  const bool unknown = entry == nullptr || entry->reason == Reason::new_communicator ||
                       entry->reason == Reason::no_memory;
  if (unknown) {
    if (!mpi::true_on_all(comm, wanted() && can_have_team(comm.value))) return nullptr;
    entry = entry_with_team(comm.value);
  }
  if (entry == nullptr || entry->team == nullptr) return nullptr;
  const collectives::Engine* engine = entry->team->state().backend->engine();
  return engine != nullptr && engine->size() == mpi::size(comm) ? entry : nullptr;
}

// Collective, but only the first time for a communicator. Whether MPI has shared memory for its
// ranks, which it may see on other nodes than ropewalk does.
bool mpi_shares(CommunicatorEntry& entry, mpi::Comm comm) {
  if (!entry.shared_by_mpi) {
    bool all = false;
    mpi::collectively(comm, [&] {
      mpi::Comm near = mpi::split_shared(comm);
      all = mpi::size(near) == mpi::size(comm);
      mpi::free(near);
    });
    entry.shared_by_mpi = all;
  }
  return *entry.shared_by_mpi;
}

}  // namespace

bool make(const WindowRequest& request, void* base, void* window) noexcept {
  try {
    const mpi::Comm comm{clean(request.comm)};
    if (!mpi::initialized() || mpi::finalized() || comm == mpi::comm_null()) return false;
    CommunicatorEntry* entry = team_on_node(comm);
    if (entry == nullptr) return false;
    if (request.kind != WindowKind::create && !mpi_shares(*entry, comm)) return false;
    Collectives& team = *entry->team;
    Preparation own;
    const bool able = prepare(own, request, team, base);
    return agree(team, able, request.kind, own) && make_agreed(team, request, own, base, window);
  } catch (...) {  // a communicator that MPI refuses, or a rank that has died: all ranks see it
    return false;
  }
}

}  // namespace ropewalk::preload::onesided
