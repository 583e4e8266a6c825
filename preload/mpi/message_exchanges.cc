// This file serves MPI_Isendrecv and MPI_Isendrecv_replace. Their two halves are requests of their
// own, and the program's request is a receive of an empty message from this process to itself,
// which is sent when both halves are over. What they send is MPI's own message.
#include <cstdlib>

#include "datatypes.hpp"
#include "local_mpi.hpp"
#include "message_counts.hpp"
#include "message_mpi.hpp"
#include "pending.hpp"
#include "stash.hpp"
#include "taking.hpp"

namespace ropewalk::preload::serve {
namespace {

using namespace messages;

struct SendingHalf {
  const void* data;
  Count count;
  Word type;
  int destination;
  int tag;
};

void cancel(Word request) noexcept {
  real.cancel(&request);
  real.wait(&request, reinterpret_cast<void*>(abi().status_ignore));
}

// Starts the receiving half.
int receive(Pending& entry, Word type) noexcept {
  const MessagePattern& from = entry.from;
  auto found = stash.empty() ? std::nullopt : stash.take(from);
  if (!found) {
    return post_receive(entry.to.buffer, entry.to.count, type, from.source, from.tag, from.comm,
                        &entry.inner);
  }
  entry.large = false;  // a message that the stash has matched is no descriptor
  if (!found->opened) {
    return start_matched(entry.to.buffer, entry.to.count, type, &found->message, &entry.inner);
  }
  if (!entry.described) {
    return raise({from.comm}, "a receive whose count or datatype MPI does not take");
  }
  entry.taken = deliver(*found, entry.to);
  return 0;
}

// Starts both halves. Where one fails, nothing is left of either.
int start(Pending& entry, const SendingHalf& send, Word type) noexcept {
  if (const int code = receive(entry, type); code != 0) return entry.inner = 0, code;
  const Word comm = entry.from.comm;
  const int code = by_count(send.count, comm, next.Isend, next.Isend_c, [&](auto* isend, auto n) {
    return isend(send.data, n, send.type, send.destination, send.tag, comm, &entry.sending);
  });
  if (code == 0) return 0;
  if (entry.inner != 0) cancel(entry.inner);
  entry.inner = entry.sending = 0;
  return code;
}

// The copy is the entry's, or is freed.
int exchange(const Pending& described, const SendingHalf& send, void* copy, Word type,
             void* request) {
  const MessageLock lock;
  Pending made = described;
  made.copy = copy;
  Word handle = 0;
  const int code = make_own(handle, made.tag);
  if (code != 0) return std::free(copy), raise_code(made.from.comm, code);
  Pending* entry = nullptr;
  try {
    entry = &pending.add_exchange(handle, made);
  } catch (...) {
    std::free(copy);
    cancel(handle);
    return raise({made.from.comm}, "no memory to keep a request in mind");
  }
  if (const int failed = start(*entry, send, type); failed != 0) {
    pending.erase(handle);
    cancel(handle);
    return failed;
  }
  ProgramRequests(request).set(0, handle);
  return 0;
}

}  // namespace

int Isendrecv(const void* data, int count, Word type, int destination, int send_tag, void* buffer,
              int room, Word room_type, int source, int tag, Word comm, void* request) {
  return Isendrecv_c(data, count, type, destination, send_tag, buffer, room, room_type, source, tag,
                     comm, request);
}
int Isendrecv_c(const void* data, Count count, Word type, int destination, int send_tag,
                void* buffer, Count room, Word room_type, int source, int tag, Word comm,
                void* request) {
  if (!ranks.understands) {
    return by_counts(count, room, comm, next.Isendrecv, next.Isendrecv_c,
                     [&](auto* function, auto sent, auto received) {
                       return function(data, sent, type, destination, send_tag, buffer, received,
                                       room_type, source, tag, comm, request);
                     });
  }
  const MessagePattern from{source, tag, clean(comm)};
  return exchange(described(buffer, room, room_type, from),
                  {data, count, type, destination, send_tag}, nullptr, room_type, request);
}

int Isendrecv_replace(void* buffer, int count, Word type, int destination, int send_tag, int source,
                      int tag, Word comm, void* request) {
  return Isendrecv_replace_c(buffer, count, type, destination, send_tag, source, tag, comm,
                             request);
}
int Isendrecv_replace_c(void* buffer, Count count, Word type, int destination, int send_tag,
                        int source, int tag, Word comm, void* request) {
  const auto pass = [&] {
    return by_count(
        count, comm, next.Isendrecv_replace, next.Isendrecv_replace_c, [&](auto* function, auto n) {
          return function(buffer, n, type, destination, send_tag, source, tag, comm, request);
        });
  };
  if (!ranks.understands || may_have_devices()) return pass();
  const MessageLock lock;
  const Pending receive = described(buffer, count, type, {source, tag, clean(comm)});
  if (!receive.described) {
    // Nothing large comes for a type that the drop-in cannot describe.
    if (stash.empty()) return pass();
    return raise({clean(comm)}, "a receive whose count or datatype MPI does not take");
  }
  void* copy = copy_of(receive.to);
  if (copy == nullptr) return raise({clean(comm)}, no_copy);
  SendingHalf send{copy, count, type, destination, send_tag};
  if (!receive.to.direct) {
    send.count = static_cast<Count>(bytes_at(receive.to));
    send.type = mpi::byte_type().value;
  }
  return exchange(receive, send, copy, type, request);
}

}  // namespace ropewalk::preload::serve
