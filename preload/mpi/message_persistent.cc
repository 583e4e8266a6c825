// This file serves MPI_Recv_init, MPI_Start and MPI_Startall, the latter two for persistent
// collectives as well (persistent_inits.cc). A persistent receive keeps MPI's own request, which
// gets the data or a descriptor anew at each start. Where the stash has its message, that is
// received instead, and MPI's request is not started. Persistent sends are MPI's.
#include <cstddef>

#include "datatypes.hpp"
#include "local_mpi.hpp"
#include "message_mpi.hpp"
#include "pending.hpp"
#include "stash.hpp"
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
    code = real.imrecv(receive.to.buffer, receive.to.count, receive.to.elements.type.value,
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

}  // namespace

int Recv_init(void* buffer, int count, Word type, int source, int tag, Word comm, void* request) {
  const int code = next.Recv_init(buffer, count, type, source, tag, comm, request);
  if (code != 0 || source == mpi::proc_null()) return code;
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
  const Word handle = ProgramRequests(request).get(0);
  Pending* receive = pending.find_inactive(handle);
  if (receive == nullptr) return next.Start(request);
  if (receive->collective != nullptr) return pending.collectives().start(*receive), 0;
  if (!stash.empty()) {
    if (auto found = stash.take(receive->from)) return start_from_stash(handle, *found);
  }
  const int code = next.Start(request);
  if (code == 0 && receive->large) pending.activate(handle);
  return code;
}

int Startall(int count, void* requests) {
  const ProgramRequests given(requests);
  bool ours = false;
  for (int i = 0; i < count; ++i) {
    const Word handle = given.get(static_cast<std::size_t>(i));
    ours = ours || pending.find_inactive(handle) != nullptr;
  }
  if (!ours) return next.Startall(count, requests);
  int code = 0;
  for (int i = 0; i < count && code == 0; ++i) {
    Word handle = given.get(static_cast<std::size_t>(i));
    code = Start(&handle);
  }
  return code;
}

}  // namespace ropewalk::preload::serve
