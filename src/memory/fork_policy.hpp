// What happens to shared memory when the process forks, and which ranges of this process belong to
// ropewalk.
//
// A child that shared our memory would overwrite what the parent's peers read. So, with the policy
// `copy`, the child gets live blocks as a private copy at the same addresses, and the parent goes
// on only when the copy is complete: neither sees later writes of the other. With `refuse` the
// child gets nothing; touching the old addresses there is a segmentation fault, never silent
// sharing. A child that has no room for the copy is treated as with `refuse`.
//
// Other threads of the parent run on during the copy, and peers may write: what they change
// meanwhile is in the copy or not, as with any race against fork().
//
// Cost of `copy`: fork() takes a copy of all live bytes, 0.2 to 0.5 s/GiB, and the memory until the
// child ends or calls exec. posix_spawn, system and vfork run no fork handlers and pay nothing.
#pragma once

#include <cstddef>
#include <mutex>

#include "memory/options.hpp"

namespace ropewalk::memory {

class ForkParticipant {
 public:
  ForkParticipant() = default;
  ForkParticipant(const ForkParticipant&) = delete;
  ForkParticipant& operator=(const ForkParticipant&) = delete;
  virtual ~ForkParticipant() = default;

  virtual const void* base() const noexcept = 0;
  // Called around the fork, in the parent; unlock() also in the child, last.
  virtual void lock() noexcept {}
  virtual void unlock() noexcept {}
  // Whether there is anything that the child would copy; if not, the parent need not wait.
  virtual bool has_data() const noexcept = 0;
  // Called in the child, which has this thread only. Returns false where there is no room;
  // drop_in_child() comes next.
  virtual bool copy_in_child() noexcept = 0;
  virtual void drop_in_child() noexcept = 0;
  // Returns an arena that has this range; called with the registry locked.
  virtual bool peers_can_map(const void*, std::size_t) const noexcept { return false; }
};

// Each copy of the library does so when it is loaded, or at the first call. In the order of
// handlers for fork the first are best: before it they run last, after it first, so that everybody
// else's find the memory as it was, and lock before us. Throws Error(system).
void install_fork_handlers();

// Held while the arena of this process is made: a fork waits until it is.
std::mutex& arena_making() noexcept;

// Throws Error(argument) for a malformed ROPEWALK_FORK, read at the first call. The participant
// must be removed before it dies, and must not be locked by the caller in either call.
void add_participant(ForkParticipant&);
void remove_participant(ForkParticipant&) noexcept;
// Removes the one with this base; null where there is none.
ForkParticipant* take_participant(const void* base) noexcept;

// Replaces ROPEWALK_FORK, from the next fork on; returns what it was.
ForkPolicy set_fork_policy(ForkPolicy);

// This looks at any arena of this process.
bool peers_can_map(const void* address, std::size_t bytes) noexcept;

}  // namespace ropewalk::memory
