// An error of one rank as an error of all, so that no rank waits for one that has thrown.
//
//   ropewalk::collectively(world, [&] { table = read(path); });  // fails on all ranks, or on none
#pragma once

#include <memory>
#include <type_traits>

#include "ropewalk/communicator.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/export.hpp"

namespace ropewalk {

class Collectives;

// An error that all ranks of a communicator throw at the same place.
class RW_EXPORT CollectiveError : public Error {
 public:
  using Error::Error;
};

// A reference to a callable object, valid while that object lives. It allocates nothing, since an
// allocation might fail on one rank alone.
class Work {
 public:
  template <class Callable, class = std::enable_if_t<!std::is_same_v<std::decay_t<Callable>, Work>>>
  Work(Callable&& callable) noexcept  // NOLINT: implicit, as std::function
      : object_(const_cast<void*>(static_cast<const void*>(std::addressof(callable)))),
        call_([](void* object) { (*static_cast<std::remove_reference_t<Callable>*>(object))(); }) {}
  void operator()() const { call_(object_); }

 private:
  void* object_;
  void (*call_)(void*);
};

// Collective. Runs `work` on every rank. Where it throws on any of them, every rank throws
// CollectiveError with the code and the words of the lowest such rank, which is named where others
// have not failed; Error(peer_dead) is thrown as it is, since nothing can be shared with the dead.
// `work` may make other objects of ropewalk on the communicator, all ranks the same; otherwise it
// communicates with nobody. The ranks tell each other in one or two calls of MPI.
RW_EXPORT void collectively(Communicator, const Work& work);

// Does the same for ranks that have collectives of ropewalk's, by which they tell each other.
// `work` may also call these, all ranks the same; before each call it calls meet(), after which
// nothing may fail that can fail on one rank alone.
RW_EXPORT void collectively(Collectives&, const Work& work);
// Inside of collectively(): throws what another rank has failed with. Does nothing elsewhere.
RW_EXPORT void meet(Collectives&);

}  // namespace ropewalk
