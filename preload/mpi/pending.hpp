// This table holds the requests of the program behind which a message may go through memory: large
// receives, and sends whose data a receiver is to copy. It also holds the persistent collectives
// that the ranks serve. While it is empty, a wait or a test is MPI's alone.
//
// The handle of a send is MPI's own receive of an acknowledgement, so that it is valid in every
// function of MPI that completes requests.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <map>
#include <memory>
#include <vector>

#include "message_lock.hpp"
#include "message_mpi.hpp"
#include "os/waiting.hpp"
#include "outbox.hpp"
#include "persistent.hpp"
#include "started_round.hpp"
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
  // the request is settled, or is a collective's.
  bool apart = false;
  // MPI's request for the receive of an exchange or of a message that the stash had matched, or 0.
  Word inner = 0;
  Word sending = 0;      // MPI's request for the sending half of an exchange, or 0
  void* copy = nullptr;  // what it sends, where the receive overwrites the program's buffer
  int tag = 0;           // an exchange's request is a receive from this process with this tag
  // What a persistent send sends, and its bytes: 0 where MPI sends it. MPI's own request is not
  // active while a message is announced, of which there is no acknowledgement.
  bool sends = false;
  SendArguments send{};
  std::size_t send_bytes = 0;
  // What a persistent request does that is no receive. MPI's own request is never active then, so
  // that the program's is active where it is `apart`.
  std::shared_ptr<PersistentCollective> collective;
  // A nonblocking collective, whose request is that of an exchange.
  std::shared_ptr<StartedRound> round;
};
// The program has completed a persistent request, which may be started again.
void end_use(Pending&) noexcept;
// Completes a request that the program has freed, and of which nothing is left to do.
void complete_freed(Word request, const Pending&) noexcept;
// Makes a request that is complete once complete_own() is called with the tag. Returns MPI's code.
// There are fewer of these at a time than tags, 2^27 and more in today's MPIs.
int make_own(Word& request, int& tag) noexcept;
void complete_own(int tag) noexcept;
// Describes a receive of this kind.
Pending described(void* buffer, Count, Word type, const MessagePattern& from) noexcept;

// The requests of persistent collectives.
class CollectiveRequests {
 public:
  std::size_t active() const noexcept { return active_.load(std::memory_order_relaxed); }
  // Adds one that is not active, or throws std::bad_alloc and adds none.
  void add(Word handle, Word comm, std::shared_ptr<PersistentCollective>);
  // Returns an entry, active or not, or null. It looks at one line of the cache, unless several
  // handles share that.
  Pending* find(Word handle) noexcept {
    if (entries_.empty()) return nullptr;
    const Near& known = near_[place_of(handle)];
    return known.handle == handle ? known.entry : find_far(handle);
  }
  // Returns an active one, or null.
  Pending* find_active(Word handle) noexcept {
    Pending* found = find(handle);
    return found != nullptr && found->apart ? found : nullptr;
  }
  // Starts one that is not active, and ends its round, after which it is inactive again.
  void start(Pending&) noexcept;
  void end_round(Pending&) noexcept;
  // The program has freed an active one, which is completed all the same.
  void free(Pending&) noexcept;
  void end_freed() noexcept;
  void erase(Word handle) noexcept;
  bool uses(Word comm) const noexcept;
  // The communicator is about to be freed; what fails is raised by `stand_in`.
  void forget(Word comm, Word stand_in) noexcept;
  // Returns the collective of an entry, or null. Whoever removes the entry keeps it until the lock
  // is given up, since the end of a type may call functions of the program.
  std::shared_ptr<PersistentCollective> collective_of(Word handle) noexcept;
  // Ends all when MPI is about to end.
  void end() noexcept;

 private:
  // An entry that was found lately.
  struct Near {
    Word handle = 0;
    Pending* entry = nullptr;
  };
  static constexpr std::size_t near_places = 64;  // a program has a few persistent collectives

  // Fibonacci hashing, as in handle_table.hpp: the top 6 bits.
  static std::size_t place_of(Word handle) noexcept {
    return static_cast<std::size_t>((handle * 0x9e3779b97f4a7c15ULL) >> 58);
  }
  Pending* find_far(Word handle) noexcept;
  // Under the lock, so that it needs no operation that is atomic as a whole.
  void count_active(int more) noexcept {
    active_.store(active() + static_cast<std::size_t>(more), std::memory_order_relaxed);
  }

  std::map<Word, Pending> entries_;  // which never move
  std::array<Near, near_places> near_{};
  // A thread that completes one has been given that by the one that started it, and so sees it.
  std::atomic<std::size_t> active_{0};
  std::size_t freed_ = 0;  // of the active ones
};

// Whoever calls anything but empty() and only_collectives() holds the MessageLock. A round of a
// collective is carried out under it as well, which waits for nobody.
class PendingRequests {
 public:
  bool empty() const noexcept { return only_collectives() && collectives_.active() == 0; }
  // Nothing but collectives is pending, which go on without this rank.
  bool only_collectives() const noexcept { return count_.load(std::memory_order_relaxed) == 0; }
  Pending* find(Word handle) noexcept;
  CollectiveRequests& collectives() noexcept { return collectives_; }
  // Each of these adds an entry, or throws std::bad_alloc and adds none.
  void add_receive(Word handle, const Destination&);
  // Adds a receive whose request MPI has completed, and whose data is there.
  void add_received(Word handle, const Destination&, const Taken&);
  void add_send(Word handle, Outgoing&, Word comm);
  // Adds an exchange, which is filled in afterwards.
  Pending& add_exchange(Word handle, const Pending&);
  // Adds a nonblocking collective, which the request stands for, a receive from this process with
  // the tag.
  void add_round(Word handle, Word comm, int tag, std::shared_ptr<StartedRound>);
  // Adds a persistent receive that is not active.
  void add_persistent(Word handle, const Pending& receive);
  // Adds a persistent send that is not active.
  void add_persistent(Word handle, const SendArguments&, std::size_t bytes);
  // The communicator is about to be freed: MPI alone goes on with persistent sends over it, and
  // what fails is raised by `stand_in`.
  void forget(Word comm, Word stand_in) noexcept;
  // Says whether there is a request of the communicator, of any kind or one under way that the
  // program has freed.
  enum class Kind { any, freed };
  bool uses(Word comm, Kind kind = Kind::any) const noexcept;
  // Returns a persistent request that is not active, or null.
  Pending* find_inactive(Word handle) noexcept;
  // Makes a persistent message active, which needs no memory.
  Pending& activate(Word handle) noexcept;
  // Removes a persistent request that is not active, whose request is about to be freed.
  void erase_inactive(Word handle) noexcept;
  // Removes the entry of a request that the program has completed. A persistent one is inactive
  // from then on.
  void erase(Word handle) noexcept;
  // The program has freed an active request, which is completed all the same.
  void free(Pending&) noexcept;
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
  bool take_some_of_all() noexcept;
  Entries::iterator drop(Entries::iterator) noexcept;
  // To be called whenever an entry was added or removed.
  void count() noexcept { count_.store(entries_.size(), std::memory_order_relaxed); }

  Entries entries_;
  // The number of them. A thread that completes a request of the table has been given that by the
  // one that added it, and so sees it.
  std::atomic<std::size_t> count_{0};
  Entries inactive_;  // persistent messages, which cost nothing until they are started
  CollectiveRequests collectives_;
  Word turn_ = 0;  // the handle that was looked at last
  bool taking_ = false;
};
extern PendingRequests& pending;
// Looks at a request that is in the table, as MPI_Request_get_status does. The caller holds the
// MessageLock.
int get_status(Word request, int* flag, void* status);
// Served collectives call this while they wait.
void look_in_collectives() noexcept;

// A wait for messages of other nodes never sleeps (os/waiting.hpp). Where there are several
// threads, one may wait in order that MPI makes progress, so that it sleeps but for a short time.
inline const os::WaitPolicy& wait_policy() noexcept {
  if (ranks.threads && !ranks.over_nodes) {
    return ranks.crowded ? os::wait_beside_threads_crowded : os::wait_beside_threads;
  }
  if (ranks.over_nodes) return ranks.crowded ? os::wait_for_nodes_crowded : os::wait_for_nodes;
  return ranks.crowded ? os::wait_for_ranks_crowded : os::wait_for_ranks;
}
// Waits until ready() returns true, and meanwhile takes what comes for other receives. The caller
// does not hold the MessageLock.
template <class Ready>
void wait_unlocked(Ready ready) {
  os::Waiting wait(wait_policy());
  for (;;) {
    if (ranks.ended) [[unlikely]] {
      stay();
    }
    if (ready()) return;
    wait.poll([] {
      MessageLock::let_others();
      const MessageLock lock;
      if (!ranks.ended) pending.look();
    });
    wait.pause();
  }
}
// The same for a ready() that is to hold the lock.
template <class Ready>
void wait_until(Ready ready) {
  wait_unlocked([&] {
    MessageLock lock;
    lock.stay_if_ended();
    return ready();
  });
}

}  // namespace ropewalk::preload::messages
