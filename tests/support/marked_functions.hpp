// Functions of an MPI that mark their time as MPI's own, so that a test can tell its calls of the
// system from those of the library.
#pragma once

#include "mpi/library.hpp"

namespace ropewalk::test {

// How many marked functions this thread is in, one inside the other.
inline constinit thread_local int inside_mpi = 0;

// A member of the table of MPI functions, replaced by one that marks its time.
template <auto Member>
struct Marked;

template <class... Arguments, int (*mpi::Functions::*Member)(Arguments...)>
struct Marked<Member> {
  static inline int (*original)(Arguments...) = nullptr;
  static int call(Arguments... arguments) {
    ++inside_mpi;
    const int code = original(arguments...);
    --inside_mpi;
    return code;
  }
  static void install(mpi::Functions& functions) {
    original = functions.*Member;
    if (original != nullptr) functions.*Member = &call;
  }
};

template <auto... Members>
void mark(mpi::Functions& functions) {
  (Marked<Members>::install(functions), ...);
}

}  // namespace ropewalk::test
