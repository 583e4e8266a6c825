#include "error_handlers.hpp"

#include <map>
#include <mutex>

#include "message_mpi.hpp"
#include "message_peers.hpp"
#include "mpi/mpi.hpp"
#include "never_destroyed.hpp"

namespace ropewalk::preload::messages {
namespace {

// A handler that a communicator has keeps its handle, though the program may have freed it.
NeverDestroyed<std::map<Word, Word>> made_for;
std::mutex made_for_mutex;  // held for no call of MPI, which may wait for another thread

Word known_for(Word handler) {
  const std::lock_guard lock(made_for_mutex);
  const auto known = made_for.value.find(handler);
  return known != made_for.value.end() ? known->second : 0;
}

// One thread at a time, since the split is a collective of one communicator.
Word make_for(Word handler) {
  static std::mutex making;
  const std::lock_guard alone(making);
  if (const Word known = known_for(handler); known != 0) return known;
  mpi::Comm made;
  if (!mpi::try_split(mpi::comm_self(), 0, 0, made)) return ranks.self.value;
  real.comm_set_errhandler(made.value, handler);
  const std::lock_guard lock(made_for_mutex);
  return made_for.value.emplace(handler, made.value).first->second;
}

}  // namespace

Word with_handler_of(Word comm) noexcept {
  Word handler = 0;
  if (real.comm_get_errhandler(comm, &handler) != 0) return ranks.self.value;
  Word found = ranks.self.value;  // which returns errors, where nothing else can be had
  try {
    const Word known = known_for(handler);
    found = known != 0 ? known : make_for(handler);
  } catch (...) {  // no memory
  }
  real.errhandler_free(&handler);  // the reference that this function was given
  return found;
}

}  // namespace ropewalk::preload::messages
