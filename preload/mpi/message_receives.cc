// This file serves MPI_Recv and the like, by MPI's own receive and a look at what it has brought.
#include <cstddef>
#include <cstdlib>
#include <new>
#include <optional>
#include <string>

#include "datatypes.hpp"
#include "local_mpi.hpp"
#include "message_counts.hpp"
#include "message_lock.hpp"
#include "message_mpi.hpp"
#include "message_peers.hpp"
#include "outbox.hpp"
#include "pending.hpp"
#include "stash.hpp"
#include "statistics.hpp"
#include "taking.hpp"

namespace ropewalk::preload::serve {
namespace {

using namespace messages;

// Takes what a receive has brought that is over without an error of MPI's.
int take_now(const Destination& to, void* status) noexcept {
  const Taken taken = take(to, status);
  mend(taken, status);
  if (taken.code != 0) return raise_code(to.comm, taken.code);
  return 0;
}

// An OwnStatus is the program's status or, where the program ignores it, another in its place.
class OwnStatus {
 public:
  explicit OwnStatus(void* status) noexcept : status_(is_ignored(status) ? &own_ : status) {}
  void* get() const noexcept { return status_; }

 private:
  mpi::RawStatus own_;
  void* status_;
};

// A Started is one of MPI's own requests, which is tested until it is complete.
class Started {
 public:
  Word* place() noexcept { return &request_; }
  // Returns the code of MPI's test, once that has failed.
  int code() const noexcept { return code_; }
  bool is_over(void* status) noexcept {
    if (over_) return true;
    int flag = 0;
    code_ = next.Test(&request_, &flag, status);
    over_ = flag != 0 || code_ != 0;
    return over_;
  }
  void give_up() noexcept {
    real.cancel(&request_);
    real.wait(&request_, reinterpret_cast<void*>(abi().status_ignore));
    over_ = true;
  }

 private:
  Word request_ = 0;
  int code_ = 0;
  bool over_ = false;
};

// A Sent is the sending half of an exchange, which goes through memory or by MPI.
class Sent {
 public:
  int start(const SendArguments& send, std::size_t bytes) noexcept {
    out_ = bytes == 0 ? nullptr : begin(send, bytes, false);
    comm_ = clean(send.comm);
    if (out_ != nullptr) return post(*out_, send);
    return next.Isend(send.data, send.count, send.type, send.destination, send.tag, send.comm,
                      plain_.place());
  }
  const Outgoing* out() const noexcept { return out_; }
  bool is_over() noexcept {
    if (out_ == nullptr) return plain_.is_over(reinterpret_cast<void*>(abi().status_ignore));
    if (over_) return true;
    over_ = messages::is_over(*out_);
    if (!over_) lost_ = over_ = is_found_dead(*out_) && is_lost(*out_);
    return over_;
  }
  bool is_over_locked() noexcept {
    const MessageLock lock;
    return is_over();
  }
  int end() noexcept {
    if (out_ == nullptr) return plain_.code();
    const int code = lost_ ? raise_code(comm_, code_of_loss(*out_)) : 0;
    leave(*out_);
    return code;
  }

 private:
  Outgoing* out_ = nullptr;
  Started plain_;
  Word comm_ = 0;
  bool lost_ = false;  // the receiver has died
  bool over_ = false;
};

// Call it under the MessageLock, together with the post of the receive.
std::optional<Stashed> from_stash(int source, int tag, Word comm) noexcept {
  if (stash.empty()) return std::nullopt;
  return stash.take({source, tag, clean(comm)});
}

struct Arguments {
  void* buffer;
  Count count;
  Word type;
  int source;
  int tag;
  Word comm;
};

// Takes the message from the stash, or posts the receive. `code` is MPI's.
std::optional<Stashed> take_or_post(const Arguments& receive, Word* request, int& code) noexcept {
  const MessageLock lock;
  code = 0;
  if (auto found = from_stash(receive.source, receive.tag, receive.comm)) return found;
  code = post_receive(receive.buffer, receive.count, receive.type, receive.source, receive.tag,
                      receive.comm, request);
  return std::nullopt;
}

// MPI's own receive.
int pass_receive(const Arguments& receive, void* status) noexcept {
  const auto call = [&](auto* function, auto number) {
    return function(receive.buffer, number, receive.type, receive.source, receive.tag, receive.comm,
                    status);
  };
  return by_count(receive.count, receive.comm, next.Recv, next.Recv_c, call);
}

void tell(Watch& watch, const Outgoing* out) noexcept {
  if (out == nullptr) return watch.passed(Reason::message);
  watch.served(is_kept(*out) ? Path::staged : Path::mapped);
}

// A Received is the receiving half of an exchange, whose buffer is not that of the other half.
class Received {
 public:
  Received(const Arguments& receive, const Destination& to, bool large, void* status) noexcept
      : receive_(receive), to_(to), status_(status), large_(large) {}
  // Returns an error code of MPI's, or 0.
  int start() noexcept {
    int code = 0;
    auto found = take_or_post(receive_, request_.place(), code);
    if (!found) return code;
    const auto& [buffer, count, type, source, tag, comm] = receive_;
    large_ = false;  // a message that the stash has matched is no descriptor
    if (!found->opened) {
      return start_matched(buffer, count, type, &found->message, request_.place());
    }
    over_ = true;
    code_ = receive_stashed(*found, buffer, count, type, status_);
    return 0;  // what is sent is sent all the same
  }
  bool is_over() noexcept {
    if (over_ || !request_.is_over(status_)) return over_;
    over_ = true;
    code_ = request_.code();
    if (code_ != 0 || !large_) return true;
    const Taken taken = take(to_, status_);
    mend(taken, status_);
    failed_ = taken.code;
    return true;
  }
  void give_up() noexcept {
    if (!over_) request_.give_up();
  }
  // Returns an error code, or 0. It is called without the lock, since it may raise the error.
  int end() const noexcept { return failed_ != 0 ? raise_code(to_.comm, failed_) : code_; }

 private:
  Arguments receive_;
  const Destination& to_;
  Started request_;
  void* status_;
  int code_ = 0;    // MPI's, which has raised it
  int failed_ = 0;  // ours
  bool large_;
  bool over_ = false;
};

}  // namespace

int Recv(void* buffer, int count, Word type, int source, int tag, Word comm, void* status) {
  return Recv_c(buffer, count, type, source, tag, comm, status);
}
int Recv_c(void* buffer, Count count, Word type, int source, int tag, Word comm, void* given) {
  const Arguments receive{buffer, count, type, source, tag, comm};
  if (!ranks.understands) return pass_receive(receive, given);
  if (!ranks.threads) {
    if (auto found = from_stash(source, tag, comm)) {
      return receive_stashed(*found, buffer, count, type, given);
    }
  }
  Destination to;
  const bool large = may_be_announced(buffer, count, type, comm, to);
  // Open MPI 5.0.11 tells of a revoked communicator in MPI_Recv from nobody, not in MPI_Irecv.
  const bool alone = (!ranks.threads && pending.empty()) || source == mpi::proc_null();
  if (!large && alone) return pass_receive(receive, given);
  std::optional<KeptType> kept;
  if (large) kept.emplace(to);
  const OwnStatus status(given);
  int code = 0;
  if (alone) {
    code = pass_receive(receive, status.get());
  } else {  // others may wait for what this rank is to take
    Started posted;
    if (auto found = take_or_post(receive, posted.place(), code)) {
      return receive_stashed(*found, buffer, count, type, given);
    }
    if (code != 0) return code;
    // The request is nobody else's, and an error handler is called without the lock.
    wait_unlocked([&] { return posted.is_over(status.get()); });
    code = posted.code();
  }
  if (code != 0 || !large) return code;
  return take_now(to, status.get());
}

int Irecv(void* buffer, int count, Word type, int source, int tag, Word comm, void* request) {
  return Irecv_c(buffer, count, type, source, tag, comm, request);
}
int Irecv_c(void* buffer, Count count, Word type, int source, int tag, Word comm, void* request) {
  Destination to;
  const bool large = ranks.understands && source != mpi::proc_null() &&
                     may_be_announced(buffer, count, type, comm, to);
  if (!ranks.understands) return post_receive(buffer, count, type, source, tag, comm, request);
  const MessageLock lock;
  if (auto found = from_stash(source, tag, comm)) {
    return start_stashed(*found, buffer, count, type, request);
  }
  const int code = post_receive(buffer, count, type, source, tag, comm, request);
  if (code != 0 || !large) return code;
  const ProgramRequests given(request);
  try {
    pending.add_receive(given.get(0), to);
    return 0;
  } catch (...) {  // what the receive brings would not be understood
    Word handle = given.get(0);
    real.cancel(&handle);
    real.wait(&handle, reinterpret_cast<void*>(abi().status_ignore));
    given.set(0, abi().request_null);
    return raise({clean(comm)}, "no memory to keep a request in mind");
  }
}

int Sendrecv(const void* data, int count, Word type, int destination, int send_tag, void* buffer,
             int room, Word room_type, int source, int tag, Word comm, void* given) {
  Destination to;
  const SendArguments send{data, count, type, destination, send_tag, comm};
  const std::size_t bytes = large_bytes(send);
  const bool large = may_be_announced(buffer, room, room_type, comm, to);
  const bool alone = !ranks.threads && pending.empty() && stash.empty();
  if (bytes == 0 && !large && alone) {
    return next.Sendrecv(data, count, type, destination, send_tag, buffer, room, room_type, source,
                         tag, comm, given);
  }
  std::optional<KeptType> kept;
  if (large) kept.emplace(to);
  const OwnStatus status(given);
  Watch watch(Function::sendrecv, bytes);
  Received receive({buffer, room, room_type, source, tag, comm}, to,
                   large && source != mpi::proc_null(), status.get());
  if (const int code = receive.start(); code != 0) return code;
  Sent sent;
  if (const int code = sent.start(send, bytes); code != 0) return receive.give_up(), code;
  wait_unlocked([&] {
    const bool over = sent.is_over_locked();
    return receive.is_over() && over;
  });
  if (bytes != 0) tell(watch, sent.out());
  const int code = sent.end();
  const int received = receive.end();
  return received != 0 ? received : code;
}

int Sendrecv_replace(void* buffer, int count, Word type, int destination, int send_tag, int source,
                     int tag, Word comm, void* given) {
  Destination to;
  const bool known = describe(buffer, count, type, comm, to);
  if (!known || (!ranks.threads && stash.empty()) || takes_none()) {
    const OwnStatus status(given);
    const int code = next.Sendrecv_replace(buffer, count, type, destination, send_tag, source, tag,
                                           comm, status.get());
    const bool large = known && source != mpi::proc_null() && may_be_announced(to);
    return code != 0 || !large ? code : take_now(to, status.get());
  }
  // MPI's own function would not find what a probe has taken out of MPI.
  void* copy = copy_of(to);
  if (copy == nullptr) return raise({clean(comm)}, no_copy);
  const int code =
      to.direct ? Sendrecv(copy, count, type, destination, send_tag, buffer, count, type, source,
                           tag, comm, given)
                : Sendrecv_c(copy, static_cast<Count>(bytes_at(to)), mpi::byte_type().value,
                             destination, send_tag, buffer, count, type, source, tag, comm, given);
  std::free(copy);
  return code;
}

int Init(int* argc, void* argv) {
  messages::before_init();
  const int code = next.Init(argc, argv);
  if (code == 0) messages::after_init();
  return code;
}

int Init_thread(int* argc, void* argv, int wanted, int* provided) {
  messages::before_init();
  const int code = next.Init_thread(argc, argv, wanted, provided);
  if (code == 0) messages::after_init();
  return code;
}

}  // namespace ropewalk::preload::serve
