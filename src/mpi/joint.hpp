// An error of one rank as an error of all of them.
//
// What is made collectively takes memory, opens files and starts threads on every rank, and any of
// that may fail on one rank alone. Whoever then just throws leaves the others waiting in the next
// collective call. So such a making runs in jointly(): there every collective call of MPI's on that
// communicator is preceded by a word on whether all ranks are still well (one reduction of 16
// bytes), and a rank that has failed gives its word at the end of jointly(), where the others are
// next heard.
#pragma once

#include <array>
#include <cstdint>
#include <optional>

#include "mpi/mpi.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::mpi {

// An error as it travels between ranks. It takes no memory: there may be none left.
struct Failure {
  std::int64_t code = 0;             // ErrorCode
  std::array<char, 1016> text = {};  // bytes; longer texts are cut
};

// What all ranks have thrown, or are about to: nobody waits for its rank any more.
class JointError : public Error {
 public:
  using Error::Error;
};

// What is being handled in a catch clause. Rethrows Error(peer_dead): with the dead nothing can be
// shared.
Failure current_failure();

// Collective. Throws JointError on every rank, with the error of the lowest rank that has one, and
// says which that is where others have none.
void share_failure(Comm, const Failure* own);
void share_error(Comm, const std::optional<Error>& own);

// Open from its making to its end, on the thread that makes it: what it says of collective calls
// holds for those of this thread on `comm` while no other is opened inside.
class JointMaking {
 public:
  explicit JointMaking(Comm comm) noexcept;
  ~JointMaking();
  JointMaking(const JointMaking&) = delete;
  JointMaking& operator=(const JointMaking&) = delete;

 private:
  friend void meet(Comm);
  Comm comm_;
  JointMaking* outer_;
};

// Before a collective call on `comm`: where a joint making is open there, throws what a rank has
// failed with. Nothing otherwise.
void meet(Comm comm);

// Collective. What `body` throws on any rank is thrown on all. `body` may make collective calls on
// `comm`, all ranks the same; before it makes others, or waits for ranks in another way, it calls
// meet(), after which nothing may fail that can fail on one rank alone. A body that goes on after a
// joint error has caught it around a jointly() of its own, with a meet() right before.
template <class Body>
void jointly(Comm comm, Body&& body) {
  std::optional<Failure> own;
  try {
    const JointMaking open(comm);
    body();
  } catch (const JointError&) {
    throw;
  } catch (...) {
    own = current_failure();
  }
  share_failure(comm, own ? &*own : nullptr);
}

}  // namespace ropewalk::mpi
