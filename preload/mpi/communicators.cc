#include "communicators.hpp"

#include <vector>

#include "collectives/state.hpp"
#include "local_mpi.hpp"
#include "mpi/attributes.hpp"
#include "mpi/library.hpp"
#include "nonblocking.hpp"
#include "statistics.hpp"

namespace ropewalk::preload {

HandleTable<CommunicatorEntry> communicators;
thread_local const BeingFreed* BeingFreed::innermost = nullptr;

const char* text(Reason reason) {
  constexpr const char* texts[] = {"served",
                                   "first collectives of a communicator",
                                   "before MPI_Init or after MPI_Finalize",
                                   "intercommunicator",
                                   "one rank",
                                   "ranks of another MPI_COMM_WORLD",
                                   "ranks of a node cannot share memory",
                                   "no Cartesian grid of three or more ranks around each period",
                                   "no MPI_THREAD_MULTIPLE, no cores to spare, or a small call",
                                   "arguments that MPI must judge"};
  return texts[static_cast<int>(reason)];
}

namespace {

// A team costs some ten small collectives. A communicator that sees fewer than this many is not
// worth one.
constexpr std::uint64_t calls_before_team = 2;

// MPI frees the communicator, or is about to end. Calls nothing of MPI's.
void forget(void* value) noexcept {
  auto& entry = *static_cast<CommunicatorEntry*>(value);
  entry.team.reset();
  entry.neighbours.reset();
  entry.starts = false;
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

CommunicatorEntry* add(mpi::Comm comm) {
  CommunicatorEntry& entry = communicators.insert(comm.value);
  entry.calls = 0;
  entry.reason = judge(entry, comm);
  mpi::set_attribute(comm, keyval(), &entry);
  return &entry;
}

// Collective.
void make_team(CommunicatorEntry& entry, mpi::Comm comm) {
  auto team = std::make_unique<NodeCommunicator>(Communicator(comm.value));
  entry.reason = team->direct() ? Reason::none : Reason::no_team;
  if (!team->direct()) return;
  entry.starts = serves_nonblocking(*team, comm);
  const auto& nodes = team->state().nodes;
  if (nodes != nullptr && !nodes->liveness_reason().empty()) {
    note_unwatched(nodes->liveness_reason());
  }
  entry.team = std::move(team);
}

}  // namespace

CommunicatorEntry* entry_slowly(Word word) noexcept {
  const mpi::Comm comm{word};
  CommunicatorEntry* entry = communicators.find(word);
  try {
    if (entry == nullptr) {
      if (!mpi::initialized() || mpi::finalized() || comm == mpi::comm_null()) return nullptr;
      if (BeingFreed::is(word)) return nullptr;
      entry = add(comm);
    }
    if (entry->reason == Reason::new_communicator && ++entry->calls >= calls_before_team) {
      make_team(*entry, comm);
    }
  } catch (...) {
    // MPI failed, or ranks disagree on a setting: nothing that is tried again at every call.
    if (entry != nullptr) entry->reason = Reason::no_team;
  }
  return entry;
}

}  // namespace ropewalk::preload
