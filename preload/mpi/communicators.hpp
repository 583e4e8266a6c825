// The drop-in's record of each communicator of the program: its team, or the reason why it has
// none.
//
// All ranks decide alike at the same call, since the decision follows from facts that they share.
// An entry is an attribute of the communicator, so MPI deletes it when the communicator is freed.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "functions.hpp"
#include "handle_table.hpp"
#include "local_mpi.hpp"
#include "neighbourhood.hpp"
#include "reasons.hpp"
#include "ropewalk/collectives.hpp"
#include "round_log.hpp"

namespace ropewalk::preload {

struct CommunicatorEntry {
  std::atomic<Word> handle{0};
  std::unique_ptr<Collectives> team;  // null: calls go to MPI
  // Only the thread of its collectives changes it; others may read it meanwhile.
  std::atomic<Reason> reason{Reason::new_communicator};
  bool starts = false;            // nonblocking collectives are served by a thread
  bool starts_exchanges = false;  // and those among them whose sizes are each rank's own
  // Where they are served without one; otherwise null. Calls that were started keep it.
  std::shared_ptr<RoundLog> log;
  int rank = 0;
  int size = 1;
  std::uint64_t calls = 0;
  // Found at the first call that needs it; null where MPI serves the communicator's neighbourhood.
  bool neighbours_known = false;
  // Calls that were started keep it.
  std::shared_ptr<const Neighbourhood> neighbourhood;
  // By rank: the places among the node's ranks that exchange messages, -1 for all other ranks. It
  // is empty until a message asks (message_peers.cc).
  std::vector<int> message_places;
  // Whether MPI has shared memory for all ranks; empty until a window asks (window_making.cc).
  std::optional<bool> shared_by_mpi;
};

// Returns the entry of a communicator that a collective is called on, ready to serve or not.
// Returns null before MPI_Init, after MPI_Finalize, and for what is no communicator.
CommunicatorEntry* entry_slowly(Word comm) noexcept;
// The same for a collective call that needs the team, if there is to be one, at once. All ranks of
// the communicator have one or none.
CommunicatorEntry* entry_with_team(Word comm) noexcept;
// Says whether this rank can take part in that. Local.
bool can_have_team(Word comm) noexcept;
// The same without making a team, for calls that must not wait for other ranks.
CommunicatorEntry* entry_as_it_is(Word comm) noexcept;
extern HandleTable<CommunicatorEntry> communicators;

// Lives while MPI frees the communicator. Attributes of the program may still call collectives on
// it when ropewalk's attribute is gone already. These calls go to MPI, and leave no entry that the
// next communicator with this handle would find.
class BeingFreed {
 public:
  explicit BeingFreed(Word comm) noexcept : comm_(comm), outer_(innermost) { innermost = this; }
  ~BeingFreed() { innermost = outer_; }
  BeingFreed(const BeingFreed&) = delete;
  BeingFreed& operator=(const BeingFreed&) = delete;
  static bool is(Word comm) noexcept {
    for (const BeingFreed* one = innermost; one != nullptr; one = one->outer_) {
      if (one->comm_ == comm) return true;
    }
    return false;
  }

 private:
  Word comm_;
  const BeingFreed* outer_;
  static thread_local const BeingFreed* innermost;
};

inline CommunicatorEntry* entry_of(Word comm) noexcept {
  CommunicatorEntry* entry = communicators.find_near(comm);
  if (entry == nullptr || entry->reason == Reason::new_communicator) [[unlikely]] {
    return entry_slowly(comm);
  }
  return entry;
}

}  // namespace ropewalk::preload
