// Receives by a count of 64 bits. MPI's forms with ints serve a count that fits an int, since an
// older MPI has no others.
#pragma once

#include "datatypes.hpp"
#include "functions.hpp"
#include "ints.hpp"
#include "local_mpi.hpp"
#include "message_mpi.hpp"

namespace ropewalk::preload::messages {

// Raises the error of a call for which MPI has no function.
inline int raise_missing(Word comm) noexcept {
  return raise({clean(comm)}, "a function, or a count beyond an int, that this MPI does not have");
}
// Calls call(function, count) with that of MPI's two functions which takes this count. Where MPI
// has none that does, it raises an error in the communicator.
template <class Short, class Long, class Call>
int by_count(Count count, Word comm, Short* with_int, Long* with_count, Call call) {
  if (fits_int(count) && with_int != nullptr) return call(with_int, static_cast<int>(count));
  if (with_count != nullptr) return call(with_count, count);
  return raise_missing(comm);
}
// The same of a function with two counts.
template <class Short, class Long, class Call>
int by_counts(Count count, Count room, Word comm, Short* with_int, Long* with_count, Call call) {
  const bool fits = fits_int(count) && fits_int(room);
  if (fits && with_int != nullptr) {
    return call(with_int, static_cast<int>(count), static_cast<int>(room));
  }
  if (with_count != nullptr) return call(with_count, count, room);
  return raise_missing(comm);
}

inline int post_receive(void* buffer, Count count, Word type, int source, int tag, Word comm,
                        void* request) {
  return by_count(count, comm, next.Irecv, next.Irecv_c, [&](auto* receive, auto number) {
    return receive(buffer, number, type, source, tag, comm, request);
  });
}
// Receives a message that a probe has matched.
inline int receive_matched(void* buffer, Count count, Word type, void* message, void* status) {
  const Word world = mpi::comm_world().value;
  return by_count(count, world, next.Mrecv, next.Mrecv_c, [&](auto* receive, auto number) {
    return receive(buffer, number, type, message, status);
  });
}
inline int start_matched(void* buffer, Count count, Word type, void* message, void* request) {
  const Word world = mpi::comm_world().value;
  return by_count(count, world, next.Imrecv, next.Imrecv_c, [&](auto* receive, auto number) {
    return receive(buffer, number, type, message, request);
  });
}

}  // namespace ropewalk::preload::messages
