// Collectives of MPI's that a caller waits for by itself: by tests of a nonblocking call, between
// which it may look whether the other ranks still live. A blocking call comes back from nothing but
// its end.
#pragma once

#include "mpi/library.hpp"

namespace ropewalk::mpi {

// Nonblocking collectives do not match blocking ones: all ranks of a call have a waiter, or none.
class Waiter {
 public:
  // Returns when the request is complete. Where it throws, it has left the request to MPI.
  virtual void wait(Request&) = 0;

 protected:
  ~Waiter() = default;
};

// Gives up a request that cannot be cancelled: MPI keeps it, and its buffers must stay, as after
// withdraw().
void leave(Request&) noexcept;

// One call, with a waiter or without.
template <class... Arguments>
void perform(Waiter* waiter, const char* name, int (*blocking)(Arguments...),
             Nonblocking<int (*)(Arguments...)> nonblocking,
             std::type_identity_t<Arguments>... arguments) {
  if (waiter == nullptr || nonblocking == nullptr) return check(blocking(arguments...), name);
  Request request;
  check(nonblocking(arguments..., &request.value), name);
  waiter->wait(request);
}

}  // namespace ropewalk::mpi
