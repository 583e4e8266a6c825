// This file serves MPI_Send_init and the like, MPI_Recv_init, MPI_Start and MPI_Startall, the
// latter two for persistent collectives as well (persistent_inits.cc). A persistent receive keeps
// MPI's own request, which gets the data or a descriptor anew at each start. Where the stash has
// its message, that is received instead, and MPI's request is not started. A persistent send keeps
// MPI's request, too. At each start either its message is announced, and MPI's request stays
// inactive, or MPI's request is started.
#include <cstddef>

#include "datatypes.hpp"
#include "local_mpi.hpp"
#include "message_counts.hpp"
#include "message_mpi.hpp"
#include "outbox.hpp"
#include "pending.hpp"
#include "stash.hpp"
#include "statistics.hpp"
#include "taking.hpp"

namespace ropewalk::preload::serve {
namespace {

using namespace messages;

// Receives a message of the stash. Where it was not opened, MPI receives it, which may take longer.
int start_from_stash(Word handle, Stashed& found) noexcept {
  Pending& receive = pending.activate(handle);
  receive.apart = true;
  int code = 0;
  if (!found.opened) {
    code = start_matched(receive.to.buffer, receive.to.count, receive.to.elements.type.value,
                         &found.message, &receive.inner);
  } else if (!receive.described) {
    code = raise({receive.to.comm}, "a receive whose count or datatype MPI does not take");
  } else {
    receive.taken = deliver(found, receive.to);
    receive.settled = true;
  }
  if (code != 0) pending.erase(handle);
  return code;
}

// Notes a persistent send that MPI has set up, and whose type allows it to be announced.
int note_send(const SendArguments& send, void* request, int code) noexcept {
  if (code != 0 || send.destination == mpi::proc_null()) return code;
  const std::size_t bytes = later_bytes(send);
  if (bytes == 0) return 0;
  const MessageLock lock;
  SendArguments kept = send;
  kept.comm = clean(send.comm);
  try {
    pending.add_persistent(ProgramRequests(request).get(0), kept, bytes);
  } catch (...) {  // no memory: MPI sends it
  }
  return 0;
}

int start_send(Word handle, const Pending& send, void* request) noexcept {
  if (!ranks.sends || send.send_bytes == 0) return next.Start(request);
  Watch watch(Function::send_init, send.send_bytes);
  Outgoing* out = begin(send.send, send.send_bytes, false);
  if (out == nullptr) {
    const int code = next.Start(request);
    watch.passed(Reason::message);
    return code;
  }
  if (const int code = post(*out, send.send); code != 0) return code;
  Pending& active = pending.activate(handle);
  active.out = out;
  active.apart = true;
  watch.served(Path::mapped);  // or staged, which shows when it is complete
  return 0;
}

}  // namespace

int Send_init(const void* data, int count, Word type, int to, int tag, Word comm, void* request) {
  return note_send({data, count, type, to, tag, comm}, request,
                   next.Send_init(data, count, type, to, tag, comm, request));
}
int Ssend_init(const void* data, int count, Word type, int to, int tag, Word comm, void* request) {
  return note_send({data, count, type, to, tag, comm, true}, request,
                   next.Ssend_init(data, count, type, to, tag, comm, request));
}
int Rsend_init(const void* data, int count, Word type, int to, int tag, Word comm, void* request) {
  return note_send({data, count, type, to, tag, comm}, request,
                   next.Rsend_init(data, count, type, to, tag, comm, request));
}

int Recv_init(void* buffer, int count, Word type, int source, int tag, Word comm, void* request) {
  return Recv_init_c(buffer, count, type, source, tag, comm, request);
}
int Recv_init_c(void* buffer, Count count, Word type, int source, int tag, Word comm,
                void* request) {
  const int code = by_count(count, comm, next.Recv_init, next.Recv_init_c, [&](auto* init, auto n) {
    return init(buffer, n, type, source, tag, comm, request);
  });
  if (code != 0 || !ranks.understands || source == mpi::proc_null()) return code;
  const MessageLock lock;
  const ProgramRequests given(request);
  try {
    const MessagePattern from{source, tag, clean(comm)};
    pending.add_persistent(given.get(0), described(buffer, count, type, from));
    return 0;
  } catch (...) {  // what the receive brings would not be understood
    Word handle = given.get(0);
    real.request_free(&handle);
    given.set(0, abi().request_null);
    return raise({clean(comm)}, "no memory to keep a request in mind");
  }
}

int Start(void* request) {
  const MessageLock lock;
  const Word handle = ProgramRequests(request).get(0);
  Pending* found = pending.find_inactive(handle);
  if (found == nullptr) return next.Start(request);
  if (found->collective != nullptr) return pending.collectives().start(*found), 0;
  if (found->sends) return start_send(handle, *found, request);
  if (!stash.empty()) {
    if (auto message = stash.take(found->from)) return start_from_stash(handle, *message);
  }
  const int code = next.Start(request);
  if (code == 0 && found->large) pending.activate(handle);
  return code;
}

int Startall(int count, void* requests) {
  const MessageLock lock;
  const ProgramRequests given(requests);
  bool ours = false;
  for (int i = 0; i < count; ++i) {
    const Word handle = given.get(static_cast<std::size_t>(i));
    ours = ours || pending.find_inactive(handle) != nullptr;
  }
  if (!ours) return next.Startall(count, requests);
  int code = 0;
  for (int i = 0; i < count && code == 0; ++i) {
    const auto at = static_cast<std::size_t>(i);
    Word handle = given.get(at);
    code = Start(&handle);
    // Open MPI puts another in the place of a buffered send that is not over.
    given.set(at, handle);
  }
  return code;
}

}  // namespace ropewalk::preload::serve
