#include "communicators.hpp"

#include <array>
#include <cstdint>
#include <mutex>
#include <new>
#include <string>
#include <utility>

#include "collectives/nodes/nodes.hpp"
#include "collectives/state.hpp"
#include "devices.hpp"
#include "local_mpi.hpp"
#include "messages.hpp"
#include "mpi/attributes.hpp"
#include "mpi/library.hpp"
#include "node/peers.hpp"
#include "nonblocking.hpp"
#include "statistics.hpp"

namespace ropewalk::preload {

HandleTable<CommunicatorEntry> communicators;
thread_local const BeingFreed* BeingFreed::innermost = nullptr;

const char* text(Reason reason) {
  constexpr const char* texts[] = {
      "served",
      "first collectives of a communicator",
      "before MPI_Init or after MPI_Finalize",
      "intercommunicator",
      "one rank",
      "ranks of another MPI_COMM_WORLD",
      "ranks of a node cannot share memory",
      "no communicator of MPI's to spare for messages between nodes",
      "address space limited (ulimit -v)",
      "settings are malformed, or differ between ranks: see below",
      "buffers may be a device's: ROPEWALK_DEVICE_BUFFERS=0 if not",
      "no topology, more than 16 neighbours, or pairs that the MPI changes",
      "ranks on several nodes, or too many on one for this call",
      "no MPI_THREAD_MULTIPLE, no cores to spare, or a small call",
      "arguments that MPI must judge",
      "a window that its ranks do not serve themselves",
      "a receiver or a buffer that memory does not lead to",
      "large, an operation of the program, or threads that no lock keeps apart",
      "no memory to keep the communicator in mind"};
  return texts[static_cast<int>(reason)];
}

namespace {

// A team costs some ten small collectives. A communicator that sees fewer than this many is not
// worth one.
constexpr std::uint64_t calls_before_team = 2;

// MPI frees the communicator, or is about to end. Calls nothing of MPI's.
void forget(void* value) noexcept {
  auto& entry = *static_cast<CommunicatorEntry*>(value);
  // Nonblocking calls under way go on, as MPI's do: they wait for ranks that may wait for this one.
  collectives::retire(std::move(entry.team));
  entry.neighbours_known = false;
  entry.neighbourhood.reset();
  entry.message_places.clear();
  entry.shared_by_mpi.reset();
  entry.log.reset();
  entry.starts_exchanges = false;
  if (std::exchange(entry.starts, false)) leave_place();
  communicators.erase(entry);
}

mpi::Keyval keyval() {
  static const mpi::Keyval made = mpi::create_keyval(&forget);
  return made;
}

Reason judge(CommunicatorEntry& entry, mpi::Comm comm) {
  if (mpi::is_inter(comm)) return Reason::intercommunicator;
  entry.rank = mpi::rank(comm);
  entry.size = mpi::size(comm);
  if (entry.size == 1) return Reason::one_rank;
  if (!in_this_world(comm)) return Reason::other_world;
  return Reason::new_communicator;
}

// This stands in the place of an entry that there is no memory for. This rank cannot count the
// calls of that communicator, so it must not answer as if it did: the others may make a team at the
// next one.
CommunicatorEntry* without_memory() noexcept {
  static CommunicatorEntry entry;
  entry.reason = Reason::no_memory;
  return &entry;
}

CommunicatorEntry* add(mpi::Comm comm) {
  CommunicatorEntry* entry = nullptr;
  try {
    entry = &communicators.take();
    entry->calls = 0;
    entry->reason = judge(*entry, comm);
    mpi::set_attribute(comm, keyval(), entry);
    communicators.publish(*entry, comm.value);
    return entry;
  } catch (const std::bad_alloc&) {
    if (entry != nullptr) communicators.erase(*entry);
    return without_memory();
  } catch (...) {
    communicators.erase(*entry);
    throw;
  }
}

Reason reason_of(const Collectives& team) {
  if (team.direct()) return Reason::none;
  const std::string& reason = team.reason();
  if (reason.starts_with(node::addresses_limited)) return Reason::no_addresses;
  return reason.starts_with("communicators: ") ? Reason::no_communicator : Reason::no_team;
}

// Reserves memory for a team that has yet to be made.
class Room {
 public:
  Room() = default;
  ~Room() { ::operator delete(memory_); }
  Room(const Room&) = delete;
  Room& operator=(const Room&) = delete;
  explicit operator bool() const noexcept { return memory_ != nullptr; }
  // Collective. What one rank throws, all throw.
  std::unique_ptr<Collectives> fill(mpi::Comm comm) {
    std::unique_ptr<Collectives> made(new (memory_) Collectives(Communicator(comm.value)));
    memory_ = nullptr;
    return made;
  }

 private:
  void* memory_ = ::operator new(sizeof(Collectives), std::nothrow);
};

// Some rank may pass a device's memory, then or later: all stay out.
bool may_have_devices() noexcept {
  try {
    return !device_memory().empty();
  } catch (...) {  // no memory to look
    return true;
  }
}

// Collective. Nothing in here fails on one rank alone.
void make_team(CommunicatorEntry& entry, mpi::Comm comm) {
  Room room;
  std::array<std::int64_t, 3> good{may_have_devices() ? 0 : 1, room ? 1 : 0,
                                   static_cast<std::int64_t>(messages::own_meeting())};
  mpi::all_reduce(good, mpi::Combine::min, comm);
  if (good[0] == 0 || good[1] == 0) {
    entry.reason = good[0] == 0 ? Reason::devices : Reason::no_team;
    return;
  }
  auto team = room.fill(comm);
  entry.reason = reason_of(*team);
  if (!team->direct()) return;
  entry.starts = serves_nonblocking(*team, comm);
  std::shared_ptr<RoundLog> log;
  if (team->nodes() == 1) log = make_round_log(*team, serves_rounds());
  entry.starts_exchanges = entry.starts && serves_nonblocking_exchanges(comm);
  collectives::nodes::Nodes* hierarchy = team->state().backend->hierarchy();
  if (hierarchy != nullptr && !hierarchy->liveness_reason().empty()) {
    note_unwatched(hierarchy->liveness_reason());
  }
  messages::meet(*team, comm, static_cast<messages::Meeting>(good[2]));
  entry.team = std::move(team);
  entry.log = std::move(log);
  if (entry.starts_exchanges) neighbourhood_of(entry);
}

}  // namespace

namespace {

// One thread may be in the first collective on a communicator while another sends its first message
// on it.
std::mutex adding;

CommunicatorEntry* find_or_add(Word word) {
  const mpi::Comm comm{word};
  if (!mpi::initialized() || mpi::finalized() || comm == mpi::comm_null()) return nullptr;
  if (CommunicatorEntry* known = communicators.find(word)) return known;
  const std::lock_guard lock(adding);
  if (CommunicatorEntry* known = communicators.find(word)) return known;
  return BeingFreed::is(word) ? nullptr : add(comm);
}

}  // namespace

CommunicatorEntry* entry_slowly(Word word) noexcept {
  CommunicatorEntry* entry = nullptr;
  try {
    entry = find_or_add(word);
    if (entry == nullptr) return nullptr;
    if (entry->reason == Reason::new_communicator && ++entry->calls >= calls_before_team) {
      make_team(*entry, mpi::Comm{word});
    }
  } catch (const Error& error) {
    // The reason stays: making a team is not tried again at every call.
    const bool by_settings = error.code() == ErrorCode::argument;
    if (by_settings) note_refused(error.what());
    if (entry != nullptr) entry->reason = by_settings ? Reason::settings : Reason::no_team;
  } catch (...) {
    // MPI failed, or a rank cannot have what a team takes: nothing that is tried again at every
    // call.
    if (entry != nullptr) entry->reason = Reason::no_team;
  }
  return entry;
}

CommunicatorEntry* entry_with_team(Word word) noexcept {
  CommunicatorEntry* entry = entry_as_it_is(word);
  if (entry == nullptr || entry->reason != Reason::new_communicator) return entry;
  entry->calls = calls_before_team;
  return entry_slowly(word);
}

bool can_have_team(Word word) noexcept {
  const CommunicatorEntry* entry = entry_as_it_is(word);
  return entry != nullptr && entry->reason != Reason::no_memory;
}

CommunicatorEntry* entry_as_it_is(Word word) noexcept {
  if (CommunicatorEntry* known = communicators.find_near(word)) return known;
  try {
    return find_or_add(word);
  } catch (...) {
    return nullptr;
  }
}

}  // namespace ropewalk::preload
