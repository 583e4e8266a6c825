// Messages of thread_mpi: matching in order per (source, tag, communicator), eager and rendezvous.
#include <algorithm>
#include <cstring>

#include "support/thread_mpi_world.hpp"

namespace ropewalk::test {
namespace {

bool matches(int wanted_source, int wanted_tag, int source, int tag) {
  return (wanted_source == source || wanted_source == abi().any_source) &&
         (wanted_tag == tag || wanted_tag == abi().any_tag);
}

void put_status(Word status, const RequestState& request) {
  if (status == abi().status_ignore) return;
  auto* bytes = reinterpret_cast<std::byte*>(status);
  std::memcpy(bytes + abi().status_source, &request.source, sizeof(int));
  std::memcpy(bytes + abi().status_tag, &request.tag, sizeof(int));
  std::memcpy(bytes + abi().status_error, &request.error, sizeof(int));
  std::memcpy(bytes + 16, &request.bytes, sizeof(Count));  // in MPI_internal
}

void deliver(World& world, const Message& message, const PostedReceive& receive) {
  const std::size_t bytes = std::min(message.bytes, receive.capacity);
  if (bytes > 0) std::memcpy(receive.data, message.data, bytes);
  RequestState& request = *receive.request;
  request.source = message.source;
  request.tag = message.tag;
  request.bytes = static_cast<Count>(bytes);
  if (message.bytes > receive.capacity) {
    request.error = world.error("truncated: a message of " + std::to_string(message.bytes) +
                                " bytes for a receive of " + std::to_string(receive.capacity));
  }
  request.complete = true;
  message.sender->complete = true;
  world.changed();
}

void arrive(World& world, Mailbox& mailbox, Message message) {
  for (auto posted = mailbox.posted.begin(); posted != mailbox.posted.end(); ++posted) {
    if (!matches(posted->source, posted->tag, message.source, message.tag)) continue;
    const PostedReceive receive = *posted;
    mailbox.posted.erase(posted);
    deliver(world, message, receive);
    return;
  }
  if (message.bytes <= world.options.eager_bytes) {
    const auto* first = static_cast<const std::byte*>(message.data);
    if (message.bytes > 0) message.copy.assign(first, first + message.bytes);
    message.sender->complete = true;
  }
  mailbox.unexpected.push_back(std::move(message));
  if (!mailbox.unexpected.back().copy.empty()) {
    mailbox.unexpected.back().data = mailbox.unexpected.back().copy.data();
  }
  world.changed();  // a probe may wait for it
}

void post(World& world, Mailbox& mailbox, const PostedReceive& receive) {
  for (auto m = mailbox.unexpected.begin(); m != mailbox.unexpected.end(); ++m) {
    if (!matches(receive.source, receive.tag, m->source, m->tag)) continue;
    deliver(world, *m, receive);
    mailbox.unexpected.erase(m);
    return;
  }
  mailbox.posted.push_back(receive);
}

RequestPointer null_peer(RequestPointer request) {
  request->complete = true;
  request->source = abi().proc_null;
  request->tag = abi().any_tag;
  return request;
}

int start_send(Here& here, Communicator& comm, int member, const void* data, Count count, Word type,
               int destination, int tag, RequestPointer& request) {
  request = std::make_shared<RequestState>();
  if (destination == abi().proc_null) return null_peer(request), 0;
  const auto size = static_cast<int>(comm.members.size());
  if (destination < 0 || destination >= size || tag < 0 || count < 0) {
    return here.world.error("a send to rank " + std::to_string(destination) + " of " +
                            std::to_string(size) + ", tag " + std::to_string(tag));
  }
  const std::size_t bytes = static_cast<std::size_t>(count) * type_bytes(here.world, type);
  arrive(here.world, comm.mailboxes[static_cast<std::size_t>(destination)],
         {member, tag, data, bytes, {}, request});
  return 0;
}

int start_receive(Here& here, Communicator& comm, int member, void* data, Count count, Word type,
                  int source, int tag, RequestPointer& request) {
  request = std::make_shared<RequestState>();
  if (source == abi().proc_null) return null_peer(request), 0;
  const auto size = static_cast<int>(comm.members.size());
  const bool good_source = source == abi().any_source || (source >= 0 && source < size);
  if (!good_source || (tag < 0 && tag != abi().any_tag) || count < 0) {
    return here.world.error("a receive from rank " + std::to_string(source) + " of " +
                            std::to_string(size) + ", tag " + std::to_string(tag));
  }
  const std::size_t bytes = static_cast<std::size_t>(count) * type_bytes(here.world, type);
  post(here.world, comm.mailboxes[static_cast<std::size_t>(member)],
       {source, tag, data, bytes, request});
  return 0;
}

// A receive that waits in a mailbox must not be matched once its caller has gone.
void withdraw(Communicator& comm, const RequestPointer& request) {
  for (Mailbox& mailbox : comm.mailboxes) {
    std::erase_if(mailbox.posted, [&](const PostedReceive& r) { return r.request == request; });
    std::erase_if(mailbox.unexpected, [&](const Message& m) { return m.sender == request; });
  }
}

int finish(Here& here, Communicator& comm, const RequestPointer& request, Word status) {
  const int code = here.block([&] { return request->complete; });
  if (code != 0) {
    withdraw(comm, request);
    return code;
  }
  put_status(status, *request);
  return request->error;
}

// ---- blocking -------------------------------------------------------------------------------

template <class Number>
int fake_send(const void* data, Number count, Word type, int destination, int tag, Word comm) {
  return on_communicator("MPI_Send", comm, [&](Here& here, const CommunicatorPointer& c, int me) {
    RequestPointer request;
    const int code = start_send(here, *c, me, data, count, type, destination, tag, request);
    return code != 0 ? code : finish(here, *c, request, abi().status_ignore);
  });
}

template <class Number>
int fake_recv(void* data, Number count, Word type, int source, int tag, Word comm, Word status) {
  return on_communicator("MPI_Recv", comm, [&](Here& here, const CommunicatorPointer& c, int me) {
    RequestPointer request;
    const int code = start_receive(here, *c, me, data, count, type, source, tag, request);
    return code != 0 ? code : finish(here, *c, request, status);
  });
}

// ---- nonblocking ----------------------------------------------------------------------------

template <class Number>
int fake_isend(const void* data, Number count, Word type, int destination, int tag, Word comm,
               Word* out) {
  return on_communicator("MPI_Isend", comm, [&](Here& here, const CommunicatorPointer& c, int me) {
    RequestPointer request;
    const int code = start_send(here, *c, me, data, count, type, destination, tag, request);
    if (code == 0) *out = keep(here.world, request);
    return code;
  });
}

template <class Number>
int fake_irecv(void* data, Number count, Word type, int source, int tag, Word comm, Word* out) {
  return on_communicator("MPI_Irecv", comm, [&](Here& here, const CommunicatorPointer& c, int me) {
    RequestPointer request;
    const int code = start_receive(here, *c, me, data, count, type, source, tag, request);
    if (code == 0) *out = keep(here.world, request);
    return code;
  });
}

RequestPointer find(const World& world, Word handle) {
  const auto found = world.requests.find(handle);
  return found == world.requests.end() ? nullptr : found->second;
}

int unknown_request(World& world) { return world.error("not a request, or completed before"); }

int retire(World& world, Word* handle, const RequestPointer& request, Word status) {
  put_status(status, *request);
  world.requests.erase(*handle);
  *handle = abi().request_null;
  return request->error;
}

int fake_test(Word* handle, int* flag, Word status) {
  return in_call("MPI_Test", [&](Here& here) {
    *flag = 1;
    if (*handle == abi().request_null) return 0;
    const RequestPointer request = find(here.world, *handle);
    if (request == nullptr) return unknown_request(here.world);
    if (!request->complete) return *flag = 0, 0;
    return retire(here.world, handle, request, status);
  });
}

int wait_one(Here& here, Word* handle, Word status) {
  if (*handle == abi().request_null) return 0;
  const RequestPointer request = find(here.world, *handle);
  if (request == nullptr) return unknown_request(here.world);
  const int code = here.block([&] { return request->complete; });
  return code != 0 ? code : retire(here.world, handle, request, status);
}

int fake_wait(Word* handle, Word status) {
  return in_call("MPI_Wait", [&](Here& here) { return wait_one(here, handle, status); });
}

int fake_waitall(int count, Word* handles, Word) {
  return in_call("MPI_Waitall", [&](Here& here) {
    int first = 0;
    for (int i = 0; i < count; ++i) {
      const int code = wait_one(here, handles + i, abi().status_ignore);
      if (first == 0) first = code;
    }
    return first;
  });
}

int fake_testall(int count, Word* handles, int* flag, Word) {
  return in_call("MPI_Testall", [&](Here& here) {
    *flag = 0;
    for (int i = 0; i < count; ++i) {
      if (handles[i] == abi().request_null) continue;
      const RequestPointer request = find(here.world, handles[i]);
      if (request == nullptr) return unknown_request(here.world);
      if (!request->complete) return 0;
    }
    *flag = 1;
    int first = 0;
    for (int i = 0; i < count; ++i) {
      const int code = wait_one(here, handles + i, abi().status_ignore);
      if (first == 0) first = code;
    }
    return first;
  });
}

int fake_cancel(Word* handle) {
  return in_call("MPI_Cancel", [&](Here& here) {
    const RequestPointer request = find(here.world, *handle);
    if (request == nullptr) return unknown_request(here.world);
    if (request->complete) return 0;
    const auto cancel_in = [&](Communicator& comm) {
      for (Mailbox& mailbox : comm.mailboxes) {
        const auto gone = std::erase_if(
            mailbox.posted, [&](const PostedReceive& r) { return r.request == request; });
        if (gone > 0) request->complete = true;
      }
    };
    cancel_in(*here.world.all);
    for (const auto& self : here.world.self) cancel_in(*self);
    for (const auto& [word, comm] : here.world.communicators) cancel_in(*comm);
    here.world.changed();
    return 0;
  });
}

int fake_iprobe(int source, int tag, Word comm, int* flag, Word status) {
  return on_communicator("MPI_Iprobe", comm, [&](Here&, const CommunicatorPointer& c, int me) {
    *flag = 0;
    for (const Message& m : c->mailboxes[static_cast<std::size_t>(me)].unexpected) {
      if (!matches(source, tag, m.source, m.tag)) continue;
      *flag = 1;
      put_status(status, {true, m.source, m.tag, static_cast<Count>(m.bytes), 0});
      break;
    }
    return 0;
  });
}

int fake_get_elements_x(Word status, Word, Count* count) {
  std::memcpy(count, reinterpret_cast<const std::byte*>(status) + 16, sizeof(Count));
  return 0;
}

}  // namespace

Word keep(World& world, const RequestPointer& request) {
  const Word handle = world.next_handle++;
  world.requests[handle] = request;
  return handle;
}

void fill_messages(mpi::Functions& call) {
  call.send = &fake_send<int>;
  call.recv = &fake_recv<int>;
  call.isend = &fake_isend<int>;
  call.irecv = &fake_irecv<int>;
  call.test = &fake_test;
  call.wait = &fake_wait;
  call.testall = &fake_testall;
  call.waitall = &fake_waitall;
  call.cancel = &fake_cancel;
  call.iprobe = &fake_iprobe;
  call.get_elements_x = &fake_get_elements_x;
}

void fill_large_messages(mpi::Functions& call) {
  call.send_c = &fake_send<Count>;
  call.recv_c = &fake_recv<Count>;
  call.isend_c = &fake_isend<Count>;
  call.irecv_c = &fake_irecv<Count>;
}

}  // namespace ropewalk::test
