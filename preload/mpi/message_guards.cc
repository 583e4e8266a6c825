// This file has what the drop-in does not understand: ways to receive by which a descriptor could
// reach the program as if it were its data. A process that calls one of them is sent MPI's own
// messages from then on. A process whose objects import one has promised nothing (promise.hpp), so
// that such a call comes from an object that was loaded later.
//
// The forms with 64-bit counts are those with int counts, where the count allows it.
#include "datatypes.hpp"
#include "ints.hpp"
#include "local_mpi.hpp"
#include "message_mpi.hpp"
#include "message_peers.hpp"

namespace ropewalk::preload::serve {
namespace {

using namespace messages;

int refuse(Word comm) noexcept {
  return raise({clean(comm)},
               "an object that was loaded after MPI_Init receives in a way that messages through "
               "memory do not allow, while one is under way; set ROPEWALK_MESSAGES=off");
}

// Calls MPI's function, once no descriptor can come any more.
template <class Pass>
int guarded(Word comm, Pass pass) {
  return stop_messages() ? pass() : refuse(comm);
}

// `following` is MPI's own function, or null where it has none.
template <class Function, class Short, class Long>
int by_count(bool fits, Word comm, Function* following, Short with_int, Long with_count) {
  if (fits && (ranks.understands || following == nullptr)) return with_int();
  if (following != nullptr) return guarded(comm, with_count);
  return raise({clean(comm)}, "a count beyond an int, for which this MPI has no function");
}

// Ours where this process takes what it receives, and otherwise MPI's.
template <class Function>
Function* taken_or(Function* ours, Function* of_mpi) noexcept {
  return ranks.understands ? ours : of_mpi;
}

int narrow(Count count) noexcept { return static_cast<int>(count); }

}  // namespace

int Comm_set_info(Word comm, Word info) {
  return guarded(comm, [&] { return next.Comm_set_info(comm, info); });
}
int Comm_dup_with_info(Word comm, Word info, void* made) {
  return guarded(comm, [&] { return next.Comm_dup_with_info(comm, info, made); });
}

int Recv_c(void* buffer, Count count, Word type, int source, int tag, Word comm, void* status) {
  const auto with_int = [&] {
    return taken_or(&Recv, next.Recv)(buffer, narrow(count), type, source, tag, comm, status);
  };
  return by_count(fits_int(count), comm, next.Recv_c, with_int,
                  [&] { return next.Recv_c(buffer, count, type, source, tag, comm, status); });
}
int Irecv_c(void* buffer, Count count, Word type, int source, int tag, Word comm, void* request) {
  const auto with_int = [&] {
    return taken_or(&Irecv, next.Irecv)(buffer, narrow(count), type, source, tag, comm, request);
  };
  return by_count(fits_int(count), comm, next.Irecv_c, with_int,
                  [&] { return next.Irecv_c(buffer, count, type, source, tag, comm, request); });
}
int Recv_init_c(void* buffer, Count count, Word type, int source, int tag, Word comm,
                void* request) {
  const auto with_int = [&] {
    return taken_or(&Recv_init, next.Recv_init)(buffer, narrow(count), type, source, tag, comm,
                                                request);
  };
  return by_count(fits_int(count), comm, next.Recv_init_c, with_int, [&] {
    return next.Recv_init_c(buffer, count, type, source, tag, comm, request);
  });
}
int Mrecv_c(void* buffer, Count count, Word type, void* message, void* status) {
  const auto with_int = [&] {
    return taken_or(&Mrecv, next.Mrecv)(buffer, narrow(count), type, message, status);
  };
  return by_count(fits_int(count), mpi::comm_world().value, next.Mrecv_c, with_int,
                  [&] { return next.Mrecv_c(buffer, count, type, message, status); });
}
int Imrecv_c(void* buffer, Count count, Word type, void* message, void* request) {
  const auto with_int = [&] {
    return taken_or(&Imrecv, next.Imrecv)(buffer, narrow(count), type, message, request);
  };
  return by_count(fits_int(count), mpi::comm_world().value, next.Imrecv_c, with_int,
                  [&] { return next.Imrecv_c(buffer, count, type, message, request); });
}
int Sendrecv_c(const void* data, Count count, Word type, int destination, int send_tag,
               void* buffer, Count room, Word room_type, int source, int tag, Word comm,
               void* status) {
  const auto with_int = [&] {
    return taken_or(&Sendrecv, next.Sendrecv)(data, narrow(count), type, destination, send_tag,
                                              buffer, narrow(room), room_type, source, tag, comm,
                                              status);
  };
  return by_count(fits_int(count) && fits_int(room), comm, next.Sendrecv_c, with_int, [&] {
    return next.Sendrecv_c(data, count, type, destination, send_tag, buffer, room, room_type,
                           source, tag, comm, status);
  });
}
int Sendrecv_replace_c(void* buffer, Count count, Word type, int destination, int send_tag,
                       int source, int tag, Word comm, void* status) {
  const auto with_int = [&] {
    return taken_or(&Sendrecv_replace, next.Sendrecv_replace)(
        buffer, narrow(count), type, destination, send_tag, source, tag, comm, status);
  };
  return by_count(fits_int(count), comm, next.Sendrecv_replace_c, with_int, [&] {
    return next.Sendrecv_replace_c(buffer, count, type, destination, send_tag, source, tag, comm,
                                   status);
  });
}

}  // namespace ropewalk::preload::serve
