#include "messages/far.hpp"

#include <unistd.h>

#include <exception>
#include <memory>
#include <mutex>
#include <new>
#include <string>
#include <utility>
#include <vector>

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

// MPI may still read or write it: it stays where it is. Never destroyed.
void keep(std::unique_ptr<std::byte[]> staged) noexcept {
  if (staged == nullptr) return;
  static std::mutex mutex;
  const std::lock_guard lock(mutex);
  try {
    static auto* const all = new std::vector<std::unique_ptr<std::byte[]>>;
    all->push_back(std::move(staged));
  } catch (const std::bad_alloc&) {  // push_back() has not taken it
    (void)staged.release();
  }
}

// Gives up the request of a message. Sends cannot be cancelled.
void give_up(MessageOperation& operation) noexcept {
  if (operation.request == mpi::Request{}) return;  // never begun
  bool is_over = false;
  if (operation.is_send) {
    mpi::leave(operation.request);
  } else {
    is_over = mpi::withdraw(operation.request);
  }
  if (!is_over) keep(std::move(operation.staged));
}

// Is called where an exception is caught. It is told to whoever waits for this message.
void fail(MessageOperation& operation) noexcept {
  give_up(operation);
  try {
    throw;
  } catch (const Error& error) {
    operation.error.emplace(error);
  } catch (const std::exception& error) {
    operation.error.emplace(ErrorCode::memory, std::string("channel: ") + error.what());
  }
  operation.complete = true;
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
  if (!advance(send)) under_way_.add(send);
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
  try {
    begin_receive(operation, status);
  } catch (...) {
    fail(operation);
  }
}

void Far::begin_receive(MessageOperation& operation, const mpi::Status& status) {
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

// Returns whether the message is over.
bool Far::advance(MessageOperation& operation) noexcept {
  try {
    if (!mpi::test(operation.request)) return false;
    if (operation.device != nullptr && !operation.is_send) {
      put_into_device(operation, operation.staged.get(), operation.status.bytes);
    }
    operation.complete = true;
  } catch (...) {
    fail(operation);
  }
  return true;
}

void Far::withdraw(MessageOperation& operation) noexcept {
  under_way_.remove(operation);
  give_up(operation);
}

std::optional<MessageStatus> Far::probe(int source, int tag) {
  mpi::Status status;
  if (!found(source, tag, status)) return {};
  return status_of(status);
}

}  // namespace ropewalk::messages
