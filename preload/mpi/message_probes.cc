// This file serves MPI_Probe and the like. A probe reports the size of the message itself, where
// MPI has only its descriptor.
#include <cstddef>
#include <map>
#include <new>
#include <optional>
#include <utility>

#include "datatypes.hpp"
#include "local_mpi.hpp"
#include "message_counts.hpp"
#include "message_mpi.hpp"
#include "message_peers.hpp"
#include "never_destroyed.hpp"
#include "pending.hpp"
#include "stash.hpp"

namespace ropewalk::preload::serve {
namespace {

using namespace messages;

// A Handed is an opened message that a matched probe has given to the program. Its handle is that
// of an empty message of this process to itself.
struct Handed {
  Stashed message;
  Word sent = 0;  // MPI's request for that empty message
};
NeverDestroyed<std::map<Word, Handed>> all_handed;
std::map<Word, Handed>& handed = all_handed.value;

// Makes MPI's handle for an opened message. Returns a code of MPI's.
int hand_out(Stashed& message, Word& handle) noexcept {
  constexpr int tag = 2;  // completed requests have tag 1
  Handed made{message, 0};
  const Word bytes = mpi::byte_type().value;
  int code = real.isend(nullptr, 0, bytes, 0, tag, ranks.self.value, &made.sent);
  for (int flag = 0; code == 0 && flag == 0;) {
    code = real.improbe(0, tag, ranks.self.value, &flag, &handle,
                        reinterpret_cast<void*>(abi().status_ignore));
  }
  if (code != 0) return code;
  try {
    handed.emplace(handle, made);
    return 0;
  } catch (const std::bad_alloc&) {
    return raise({message.from.comm}, "no memory to keep a probed message in mind");
  }
}

// Takes back what hand_out() gave, and makes the program's handle null.
Stashed take_back(std::map<Word, Handed>::iterator at, void* message) noexcept {
  Word handle = at->first;
  Handed found = at->second;
  handed.erase(at);
  void* const ignored = reinterpret_cast<void*>(abi().status_ignore);
  real.mrecv(nullptr, 0, mpi::byte_type().value, &handle, ignored);
  real.wait(&found.sent, ignored);
  ProgramRequests(message).set(0, handle);
  return found.message;
}

std::optional<Stashed> taken_back(void* message) noexcept {
  const MessageLock lock;
  const auto found = handed.empty() ? handed.end() : handed.find(ProgramRequests(message).get(0));
  if (found == handed.end()) return std::nullopt;
  return take_back(found, message);
}

int give(Stashed& found, void* message, void* status) noexcept {
  Word handle = found.message;
  show(found, status);
  if (found.opened) {
    if (const int code = hand_out(found, handle); code != 0) return code;
  }
  ProgramRequests(message).set(0, handle);
  return 0;
}

// Where there are several threads, another may meet the other ranks while this one waits in MPI's
// probe, which would return a descriptor then.
bool probes_by_mpi() noexcept { return !ranks.ready && !ranks.threads; }

// Looks into the stash, and then at what MPI has. The result is null where there is no message, or
// where MPI's own answer is right; `code` is MPI's.
const Stashed* probe(const MessagePattern& wanted, int* flag, void* status, int& code) noexcept {
  code = 0;
  if (const Stashed* found = stash.find(wanted)) return *flag = 1, found;
  code = next.Iprobe(wanted.source, wanted.tag, wanted.comm, flag, status);
  if (code != 0 || *flag == 0 || !Stash::may_be_descriptor(wanted.comm, status)) return nullptr;
  const mpi::Status seen = mpi::read_status(abi(), *static_cast<const mpi::RawStatus*>(status));
  const MessagePattern exact{seen.source, seen.tag, wanted.comm};
  code = stash.extract(exact);
  return code == 0 ? stash.find(exact) : nullptr;
}

}  // namespace

int Iprobe(int source, int tag, Word comm, int* flag, void* status) {
  const MessageLock lock = MessageLock::after_others();
  if (!ranks.ready) return next.Iprobe(source, tag, comm, flag, status);
  note_probe();
  mpi::RawStatus own;
  int code = 0;
  const Stashed* found = probe({source, tag, clean(comm)}, flag, &own, code);
  if (!pending.empty()) pending.look();
  if (code != 0 || *flag == 0) return code;
  if (found != nullptr) return show(*found, status), 0;
  if (!is_ignored(status)) copy_status(&own, status);
  return 0;
}

int Probe(int source, int tag, Word comm, void* status) {
  if (probes_by_mpi()) return next.Probe(source, tag, comm, status);
  int flag = 0;
  int code = 0;
  wait_unlocked([&] {
    code = Iprobe(source, tag, comm, &flag, status);
    return flag != 0 || code != 0;
  });
  return code;
}

int Improbe(int source, int tag, Word comm, int* flag, void* message, void* status) {
  const MessageLock lock = MessageLock::after_others();
  if (!ranks.ready) return next.Improbe(source, tag, comm, flag, message, status);
  note_probe();
  if (!pending.empty()) pending.look();
  const MessagePattern wanted{source, tag, clean(comm)};
  if (auto found = stash.take(wanted)) return *flag = 1, give(*found, message, status);
  Stashed one;
  int code = next.Improbe(source, tag, comm, flag, &one.message, &one.status);
  if (code != 0 || *flag == 0) return code;
  const mpi::Status seen = mpi::read_status(abi(), one.status);
  one.from = {seen.source, seen.tag, wanted.comm};
  if (Stash::may_be_descriptor(wanted.comm, &one.status)) code = messages::open(one);
  return code != 0 ? code : give(one, message, status);
}

int Mprobe(int source, int tag, Word comm, void* message, void* status) {
  if (probes_by_mpi()) return next.Mprobe(source, tag, comm, message, status);
  int flag = 0;
  int code = 0;
  wait_unlocked([&] {
    code = Improbe(source, tag, comm, &flag, message, status);
    return flag != 0 || code != 0;
  });
  return code;
}

int Mrecv(void* buffer, int count, Word type, void* message, void* status) {
  return Mrecv_c(buffer, count, type, message, status);
}
int Mrecv_c(void* buffer, Count count, Word type, void* message, void* status) {
  auto found = taken_back(message);
  if (!found) return receive_matched(buffer, count, type, message, status);
  return receive_stashed(*found, buffer, count, type, status);
}

int Imrecv(void* buffer, int count, Word type, void* message, void* request) {
  return Imrecv_c(buffer, count, type, message, request);
}
int Imrecv_c(void* buffer, Count count, Word type, void* message, void* request) {
  auto found = taken_back(message);
  if (!found) return start_matched(buffer, count, type, message, request);
  return start_stashed(*found, buffer, count, type, request);
}

}  // namespace ropewalk::preload::serve
