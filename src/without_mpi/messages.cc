// Messages without an MPI: MPI's functions on the mailboxes of communicators. A request is the
// address of its transfer.
#include <cstring>
#include <memory>

#include "os/waiting.hpp"
#include "ropewalk/error.hpp"
#include "without_mpi/members.hpp"

namespace ropewalk::without_mpi {
namespace {

using mpi::Count;

SocketTransfer* transfer_of(Word request) { return reinterpret_cast<SocketTransfer*>(request); }

void put_status(Word status, int source, int tag, std::size_t bytes) {
  if (status == abi().status_ignore) return;
  auto* raw = reinterpret_cast<std::byte*>(status);
  constexpr int success = 0;
  const auto count = static_cast<Count>(bytes);
  std::memcpy(raw + abi().status_source, &source, sizeof source);
  std::memcpy(raw + abi().status_tag, &tag, sizeof tag);
  std::memcpy(raw + abi().status_error, &success, sizeof success);
  std::memcpy(raw + 16, &count, sizeof count);  // among the fields that the ABI leaves to the MPI
}

int get_elements(Word status, Word /*type*/, Count* count) {
  std::memcpy(count, reinterpret_cast<const std::byte*>(status) + 16, sizeof *count);
  return 0;
}

std::unique_ptr<SocketTransfer> transfer(const void* data, Count count, Word type, int peer,
                                         int tag, Member& member, bool is_send) {
  require_bytes(type);
  auto made = std::make_unique<SocketTransfer>();
  made->mailbox = member.mailbox();
  made->is_send = is_send;
  made->data = static_cast<std::byte*>(const_cast<void*>(data));
  made->bytes = static_cast<std::size_t>(count);
  made->peer = peer;
  made->tag = tag;
  return made;
}

template <class Number>
int isend(const void* data, Number count, Word type, int to, int tag, Word comm, Word* request) {
  return on(comm, [&](Member& member) {
    std::unique_ptr<SocketTransfer> made = transfer(data, count, type, to, tag, member, true);
    made->mailbox->send(*made);
    *request = mpi::address(made.release());
  });
}

template <class Number>
int irecv(void* data, Number count, Word type, int from, int tag, Word comm, Word* request) {
  return on(comm, [&](Member& member) {
    std::unique_ptr<SocketTransfer> made = transfer(data, count, type, from, tag, member, false);
    made->mailbox->receive(*made);
    *request = mpi::address(made.release());
  });
}

// Ends a transfer that is over. Throws what it has failed with.
void retire(Word* request, Word status) {
  const std::unique_ptr<SocketTransfer> over(transfer_of(*request));
  *request = abi().request_null;
  if (!over->error.empty()) throw Error(ErrorCode::mpi, over->error);
  put_status(status, over->peer, over->tag, over->is_send ? 0 : over->received_bytes);
}

bool test_one(Word* request, Word status) {
  if (*request == abi().request_null) return true;
  SocketTransfer& one = *transfer_of(*request);
  if (!one.mailbox->test(one)) return false;
  retire(request, status);
  return true;
}

void wait_one(Word* request, Word status) {
  os::Waiting wait(os::wait_for_messages);
  while (!wait.poll([&] { return test_one(request, status); })) wait.pause();
}

int test(Word* request, int* flag, Word status) {
  return as_code([&] { *flag = test_one(request, status) ? 1 : 0; });
}

int wait(Word* request, Word status) {
  return as_code([&] { wait_one(request, status); });
}

int testall(int count, Word* requests, int* flag, Word /*statuses*/) {
  return as_code([&] {
    *flag = 1;
    for (int i = 0; i < count; ++i) {
      if (!test_one(requests + i, abi().status_ignore)) *flag = 0;
    }
  });
}

int waitall(int count, Word* requests, Word /*statuses*/) {
  return as_code([&] {
    for (int i = 0; i < count; ++i) wait_one(requests + i, abi().status_ignore);
  });
}

template <class Number>
int send(const void* data, Number count, Word type, int to, int tag, Word comm) {
  Word request = abi().request_null;
  const int code = isend(data, count, type, to, tag, comm, &request);
  return code != 0 ? code : wait(&request, abi().status_ignore);
}

template <class Number>
int recv(void* data, Number count, Word type, int from, int tag, Word comm, Word status) {
  Word request = abi().request_null;
  const int code = irecv(data, count, type, from, tag, comm, &request);
  return code != 0 ? code : wait(&request, status);
}

int cancel(Word* request) {
  return as_code([&] {
    SocketTransfer& one = *transfer_of(*request);
    one.mailbox->cancel(one);
  });
}

// A probe of MPI_COMM_WORLD with wildcards is the way to ask for progress (mpi::progress).
int iprobe(int source, int tag, Word comm, int* flag, Word status) {
  *flag = 0;
  if (comm == abi().comm_world) {
    Mailbox::progress_all();
    return 0;
  }
  return on(comm, [&](Member& member) {
    const std::optional<Found> found = member.mailbox()->probe(source, tag);
    if (!found) return;
    *flag = 1;
    put_status(status, found->source, found->tag, found->bytes);
  });
}

}  // namespace

void fill_messages(mpi::Functions& call) {
  call.send = &send<int>;
  call.recv = &recv<int>;
  call.isend = &isend<int>;
  call.irecv = &irecv<int>;
  call.send_c = &send<Count>;
  call.recv_c = &recv<Count>;
  call.isend_c = &isend<Count>;
  call.irecv_c = &irecv<Count>;
  call.test = &test;
  call.wait = &wait;
  call.testall = &testall;
  call.waitall = &waitall;
  call.cancel = &cancel;
  call.iprobe = &iprobe;
  call.get_elements_x = &get_elements;
}

}  // namespace ropewalk::without_mpi
