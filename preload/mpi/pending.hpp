// Requests of the program behind which a message may go through memory: large receives, and sends
// whose data a receiver is to copy. While there are none, a wait or a test is MPI's alone.
//
// The handle of a send is MPI's receive of an acknowledgement, so whoever completes it is right.
#pragma once

#include <cstddef>
#include <map>
#include <vector>

#include "message_mpi.hpp"
#include "os/waiting.hpp"
#include "outbox.hpp"
#include "taking.hpp"

namespace ropewalk::preload::messages {

struct Pending {
  Destination to;           // of a receive
  Outgoing* out = nullptr;  // of a send
  Taken taken{};            // once it is settled
  bool settled = false;     // MPI's part is complete, and ours: no waiting is left
  bool cancelling = false;
  bool freed = false;  // by the program: it ends by itself
  bool owns_type = false;
};

class PendingRequests {
 public:
  bool empty() const noexcept { return entries_.empty(); }
  Pending* find(Word handle) noexcept;
  // Throws std::bad_alloc, and then there is no entry.
  void add_receive(Word handle, const Destination&);
  void add_send(Word handle, Outgoing&);
  // The program has completed the request.
  void erase(Word handle) noexcept;
  // Takes what has come for a few of the receives; makes MPI progress.
  void look() noexcept;
  // Whether an entry is settled; a look at it. Never waits.
  bool settle(Word handle, Pending&) noexcept;
  // MPI is about to end.
  void end() noexcept;

 private:
  using Entries = std::map<Word, Pending>;
  bool settle_send(Word handle, Pending&) noexcept;
  Entries::iterator drop(Entries::iterator) noexcept;

  Entries entries_;
  Word turn_ = 0;  // the handle that was looked at last
};
extern PendingRequests pending;

// Waits until ready() is true, and takes meanwhile what comes for others.
template <class Ready>
void wait_until(Ready ready) {
  os::Waiting wait(ranks.crowded ? os::wait_for_nodes_crowded : os::wait_for_nodes);
  while (!ready()) {
    wait.poll([] { pending.look(); });
    wait.pause();
  }
}

}  // namespace ropewalk::preload::messages
