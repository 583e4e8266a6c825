// This file serves MPI_Send and the like. A large message whose receiver has promised to understand
// goes through memory, and every other one is MPI's.
#include <cstddef>

#include "communicators.hpp"
#include "datatypes.hpp"
#include "local_mpi.hpp"
#include "message_mpi.hpp"
#include "message_peers.hpp"
#include "outbox.hpp"
#include "pending.hpp"
#include "statistics.hpp"

namespace ropewalk::preload::serve {
namespace {

using namespace messages;

Path path_of(const Outgoing& out) noexcept { return is_kept(out) ? Path::staged : Path::mapped; }

// Waits in a blocking send until it is over. Meanwhile this rank takes what comes for its own
// receives, since the other rank may wait in a send to this one.
int finish(Outgoing& out, Word comm) {
  bool lost = false;
  wait_until([&] {
    if (is_over(out)) return true;
    lost = is_found_dead(out) && is_lost(out);
    return lost;
  });
  return lost ? raise_code(clean(comm), code_of_loss(out)) : 0;
}

template <class Pass>
int send_or_pass(const SendArguments& send, Pass pass) {
  const std::size_t bytes = large_bytes(send);
  if (bytes == 0) return pass();
  Watch watch(Function::send, bytes);
  Outgoing* out = begin(send, bytes, false);
  if (out == nullptr) {
    const int code = pass();
    watch.passed(Reason::message);
    return code;
  }
  if (const int code = post(*out, send); code != 0) return code;
  const int code = finish(*out, send.comm);
  watch.served(path_of(*out));
  leave(*out);
  return code;
}

void give_up(Word request) noexcept {
  real.cancel(&request);
  real.wait(&request, reinterpret_cast<void*>(abi().status_ignore));
}

// Adds the program's handle for a message on its way; the message is withdrawn where there is no
// memory for that.
int hand_out(Outgoing& out, const SendArguments& send, void* request) {
  const MessageLock lock;
  Word handle = 0;
  int code = real.irecv(nullptr, 0, mpi::byte_type().value, out.peer->place, number(out),
                        ranks.comm.value, &handle);
  if (code != 0) return withdraw(out), raise_code(send.comm, code);
  try {
    pending.add_send(handle, out, clean(send.comm));
  } catch (...) {
    give_up(handle);
    withdraw(out);
    return raise({clean(send.comm)}, "no memory to keep a request in mind");
  }
  code = post(out, send);
  if (code == 0) return ProgramRequests(request).set(0, handle), 0;
  pending.find(handle)->out = nullptr;
  pending.erase(handle);
  give_up(handle);
  return code;
}

template <class Pass>
int start_or_pass(const SendArguments& send, void* request, Pass pass) {
  const std::size_t bytes = large_bytes(send);
  if (bytes == 0) return pass();
  Watch watch(Function::isend, bytes);
  Outgoing* out = begin(send, bytes, true);
  if (out == nullptr) {
    const int code = pass();
    watch.passed(Reason::message);
    return code;
  }
  const int code = hand_out(*out, send, request);
  if (code == 0) watch.served(Path::mapped);  // or staged, which shows when it is complete
  return code;
}

}  // namespace

int Send(const void* data, int count, Word type, int to, int tag, Word comm) {
  return send_or_pass({data, count, type, to, tag, comm},
                      [&] { return next.Send(data, count, type, to, tag, comm); });
}
int Ssend(const void* data, int count, Word type, int to, int tag, Word comm) {
  return send_or_pass({data, count, type, to, tag, comm, true},
                      [&] { return next.Ssend(data, count, type, to, tag, comm); });
}
int Rsend(const void* data, int count, Word type, int to, int tag, Word comm) {
  return send_or_pass({data, count, type, to, tag, comm},
                      [&] { return next.Rsend(data, count, type, to, tag, comm); });
}
int Isend(const void* data, int count, Word type, int to, int tag, Word comm, void* request) {
  return start_or_pass({data, count, type, to, tag, comm}, request,
                       [&] { return next.Isend(data, count, type, to, tag, comm, request); });
}
int Issend(const void* data, int count, Word type, int to, int tag, Word comm, void* request) {
  return start_or_pass({data, count, type, to, tag, comm, true}, request,
                       [&] { return next.Issend(data, count, type, to, tag, comm, request); });
}
int Irsend(const void* data, int count, Word type, int to, int tag, Word comm, void* request) {
  return start_or_pass({data, count, type, to, tag, comm}, request,
                       [&] { return next.Irsend(data, count, type, to, tag, comm, request); });
}

}  // namespace ropewalk::preload::serve
