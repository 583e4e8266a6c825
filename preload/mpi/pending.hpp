// This table holds the requests of the program behind which a message may go through memory: large
// receives, and sends whose data a receiver is to copy. It also holds the persistent collectives
// that the ranks serve. While it is empty, a wait or a test is MPI's alone.
//
// The handle of a send is MPI's own receive of an acknowledgement, so that it is valid in every
// function of MPI that completes requests.
#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "message_mpi.hpp"
#include "os/waiting.hpp"
#include "outbox.hpp"
#include "persistent.hpp"
#include "stash.hpp"
#include "taking.hpp"

namespace ropewalk::preload::messages {

struct Pending {
  Destination to;           // where a receive puts its data
  Outgoing* out = nullptr;  // the message of a send
  Taken taken{};            // what a settled receive has brought
  bool settled = false;     // MPI's part and ours are complete: no waiting is left
  bool cancelling = false;
  bool freed = false;  // the program has freed the request, which ends by itself
  bool owns_type = false;
  // The next are for persistent receives, and for requests that stand for an exchange.
  bool persistent = false;
  bool exchange = false;
  bool large = false;      // a descriptor may come for it
  bool described = false;  // `to` says all that is needed to copy data there
  MessagePattern from{};
  // MPI's own request is not active, although the program's is: its message came from the stash, or
  // the request is settled.
  bool apart = false;
  // MPI's request for the receive of an exchange or of a message that the stash had matched, or 0.
  Word inner = 0;
  Word sending = 0;      // MPI's request for the sending half of an exchange, or 0
  void* copy = nullptr;  // what it sends, where the receive overwrites the program's buffer
  int tag = 0;           // an exchange's request is a receive from this process with this tag
  // What a persistent request does that is no receive. MPI's own request is never active then.
  std::shared_ptr<PersistentCollective> collective;
};
// Describes a receive of this kind.
Pending described(void* buffer, int count, Word type, const MessagePattern& from) noexcept;

class PendingRequests {
 public:
  bool empty() const noexcept { return entries_.empty(); }
  // Nothing but collectives is pending, which go on without this rank.
  bool only_collectives() const noexcept { return entries_.size() == active_collectives_; }
  Pending* find(Word handle) noexcept;
  // Each of these adds an entry, or throws std::bad_alloc and adds none.
  void add_receive(Word handle, const Destination&);
  // Adds a receive whose request MPI has completed, and whose data is there.
  void add_received(Word handle, const Destination&, const Taken&);
  void add_send(Word handle, Outgoing&, Word comm);
  // Adds an exchange, which is filled in afterwards.
  Pending& add_exchange(Word handle, const Pending&);
  // Each of these adds a persistent request that is not active.
  void add_persistent(Word handle, const Pending& receive);
  void add_collective(Word handle, Word comm, std::shared_ptr<PersistentCollective>);
  // Returns a persistent request that is not active, or null.
  Pending* find_inactive(Word handle) noexcept;
  // Makes it active, which needs no memory.
  Pending& activate(Word handle) noexcept;
  // Removes a persistent request that is not active, whose request is about to be freed.
  void erase_inactive(Word handle) noexcept;
  // Removes the entry of a request that the program has completed. A persistent one is inactive
  // from then on.
  void erase(Word handle) noexcept;
  // Takes what has come for a few of the receives. Returns false where no entry was looked at, so
  // that MPI has made no progress.
  bool take_some() noexcept;
  // The same, and MPI makes progress in any case.
  void look() noexcept;
  // Looks at an entry, and returns true where it is settled. It never waits.
  bool settle(Word handle, Pending&) noexcept;
  // Ends all requests when MPI is about to end.
  void end() noexcept;

 private:
  using Entries = std::map<Word, Pending>;
  bool settle_send(Word handle, Pending&) noexcept;
  Entries::iterator drop(Entries::iterator) noexcept;

  Entries entries_;
  Entries inactive_;  // persistent requests, which cost nothing until they are started
  std::size_t active_collectives_ = 0;
  Word turn_ = 0;  // the handle that was looked at last
};
extern PendingRequests pending;
// Served collectives call this while they wait.
void look_in_collectives() noexcept;

// Waits until ready() returns true, and meanwhile takes what comes for other receives.
template <class Ready>
void wait_until(Ready ready) {
  os::Waiting wait(ranks.crowded ? os::wait_for_ranks_crowded : os::wait_for_ranks);
  while (!ready()) {
    wait.poll([] { pending.look(); });
    wait.pause();
  }
}

}  // namespace ropewalk::preload::messages
