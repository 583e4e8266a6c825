#include "starting_rounds.hpp"

#include <utility>

#include "collectives/engine.hpp"
#include "message_mpi.hpp"
#include "nonblocking.hpp"
#include "pending.hpp"
#include "promise.hpp"
#include "settings/value.hpp"

namespace ropewalk::preload {

bool serves_rounds() noexcept {
  const settings::Value setting = settings::read(settings::Id::nonblocking);
  if (setting.malformed || setting.is("off")) return false;
  if (mpi::thread_level() == mpi::ThreadLevel::multiple) return false;
  if (!messages::completes_by_us() || !messages::load_self()) return false;
  try {
    // Intel MPI's own take less time (bench/dropin/nonblocking.py).
    return setting.is("on") || mpi::library_version().rfind("Intel(R) MPI", 0) != 0;
  } catch (...) {
    return false;
  }
}

int refuse_round(Word comm, void* request, const char* reason) noexcept {
  entry_as_it_is(comm)->log->refuse();
  OwnRequest::give_none(request);
  return raise({comm}, reason);
}

void start_round(const CommunicatorEntry& entry, Word comm, RoundPlan plan, void* request,
                 const Watch& watch) {
  using messages::pending;
  const auto round = std::make_shared<StartedRound>(entry.log, std::move(plan), watch);
  Word handle = 0;
  int tag = 0;
  mpi::check(messages::make_own(handle, tag), "MPI_Irecv");
  try {
    pending.add_round(handle, comm, tag, round);
  } catch (...) {
    messages::complete_own(tag);
    messages::real.wait(&handle, reinterpret_cast<void*>(messages::abi().status_ignore));
    throw;
  }
  round->begin();
  const bool crowded = entry.team->state().backend->engine()->team().waits().crowded();
  if (crowded) messages::ranks.crowded = true;
  messages::ProgramRequests(request).set(0, handle);
  take_completions();
}

}  // namespace ropewalk::preload
