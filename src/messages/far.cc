#include "messages/far.hpp"

#include <unistd.h>

#include <memory>
#include <utility>

#include "messages/device_buffers.hpp"
#include "messages/receiving.hpp"
#include "mpi/waiter.hpp"

namespace ropewalk::messages {
namespace {

int source_for_mpi(int source) { return source == any_source ? mpi::any_source() : source; }
int tag_for_mpi(int tag) { return tag == any_tag ? mpi::any_tag() : tag; }

MessageStatus status_of(const mpi::Status& status) {
  return {status.source, status.tag, static_cast<std::size_t>(status.bytes)};
}

}  // namespace

// The communicator is no duplicate, because MPI_Comm_dup would call the attribute functions of the
// program.
Far::Far(mpi::Comm comm, int rank, Posted& posted)
    : comm_(mpi::comm_null()), process_(getpid()), posted_(posted) {
  if (!mpi::try_split(comm, 0, rank, comm_)) {
    throw Error(ErrorCode::mpi, "channel: MPI has no communicator left; free some");
  }
  mpi::return_errors(comm_);
}

Far::~Far() {
  // A child of fork has no MPI to free anything of, and after MPI_Finalize there is none.
  if (comm_ != mpi::comm_null() && getpid() == process_ && !mpi::finalized()) mpi::free(comm_);
}

void Far::start_send(MessageOperation& send) {
  send.request = mpi::isend(send.data, send.bytes, send.peer, send.tag, comm_);
  send.status = {send.peer, send.tag, send.bytes};
  if (mpi::test(send.request)) {
    send.complete = true;
  } else {
    under_way_.add(send);
  }
}

void Far::advance() {
  under_way_.advance_all([&](MessageOperation& operation) { return advance(operation); });
  for (MessageOperation* each = posted_.first(); each != nullptr;) {
    mpi::Status status;
    if (!found(each->peer, each->tag, status)) {
      each = each->next;
      continue;
    }
    receive_found(*each, status);
    each = posted_.first();  // the list has changed
  }
}

bool Far::found(int source, int tag, mpi::Status& status) {
  return mpi::iprobe(source_for_mpi(source), tag_for_mpi(tag), comm_, status);
}

// A message has come that a receive matches. An earlier receive may match it, too: it was probed
// for before the message came, and now finds that one or another of the same source before it.
void Far::receive_found(const MessageOperation& probed, mpi::Status status) {
  const MessageOperation* last = &probed;
  while (true) {
    MessageOperation* first = posted_.match(status.source, status.tag);
    if (first == last) return receive(*first, status);
    last = first;
    if (!found(status.source, first->tag, status)) return;
  }
}

void Far::receive(MessageOperation& operation, const mpi::Status& status) {
  posted_.remove(operation);
  operation.status = status_of(status);
  if (operation.status.bytes > operation.bytes) {
    operation.error.emplace(too_long(operation.status, operation.bytes));
    const auto dropped = std::make_unique_for_overwrite<std::byte[]>(operation.status.bytes);
    mpi::receive(dropped.get(), operation.status.bytes, status.source, status.tag, comm_);
    operation.complete = true;
    return;
  }
  std::byte* data = operation.data;
  if (operation.device != nullptr) {
    operation.staged = std::make_unique_for_overwrite<std::byte[]>(operation.status.bytes);
    data = operation.staged.get();
  }
  operation.request = mpi::ireceive(data, operation.status.bytes, status.source, status.tag, comm_);
  if (!advance(operation)) under_way_.add(operation);
}

bool Far::advance(MessageOperation& operation) {
  if (!mpi::test(operation.request)) return false;
  if (operation.device != nullptr) {
    put_into_device(operation, operation.staged.get(), operation.status.bytes);
  }
  operation.complete = true;
  return true;
}

void Far::withdraw(MessageOperation& operation) noexcept {
  under_way_.remove(operation);
  if (operation.is_send) {
    mpi::leave(operation.request);
  } else {
    mpi::withdraw(operation.request);
  }
}

std::optional<MessageStatus> Far::probe(int source, int tag) {
  mpi::Status status;
  if (!found(source, tag, status)) return {};
  return status_of(status);
}

}  // namespace ropewalk::messages
