// How an intercepted call is served by the team of its communicator, or passed on to MPI.
#pragma once

#include <exception>

#include "collectives/state.hpp"
#include "communicators.hpp"
#include "datatypes.hpp"
#include "local_mpi.hpp"
#include "statistics.hpp"
#include "windows.hpp"

namespace ropewalk::preload {

// Runs serve(team), and turns an exception into an error of the communicator.
template <class Serve>
int serve_now(Word comm, Collectives& team, Serve& serve, bool& served) noexcept {
  try {
    // Preparing a call may fail on this rank alone; then the others are told.
    team.state().run([&] { served = serve(team); });
    return 0;
  } catch (const std::exception& error) {
    return raise({comm}, error.what());
  } catch (...) {
    return raise({comm}, "unknown exception");
  }
}

// serve(team) returns false, before it has done anything, for arguments that MPI must judge. All
// ranks must make such an error, since MPI does not return to the others. again() has MPI make the
// call once more, after it was served and without harm to its result, to compare the times; it
// returns a negative number where that is impossible.
template <class Serve, class Pass, class Again>
int serve_or_pass(Function function, std::size_t bytes, Word word, Serve serve, Pass pass,
                  Again again) {
  const Word comm = clean(word);
  CommunicatorEntry* entry = entry_of(comm);
  Watch watch(function, bytes);
  if (entry == nullptr || entry->team == nullptr) {
    if (entry != nullptr && entry->reason == Reason::no_memory) [[unlikely]] {
      return raise({comm}, text(Reason::no_memory));
    }
    const int code = pass();
    watch.passed(entry == nullptr ? Reason::outside : entry->reason.load());
    return code;
  }
  bool served = true;
  const int code = serve_now(comm, *entry->team, serve, served);
  if (served) {
    if (windows_made) [[unlikely]] {
      progress();
    }
    watch.served(entry->team->last_path());
    if (watch.compares(++entry->calls)) watch.compared(again);
    return code;
  }
  const int passed = pass();
  watch.passed(Reason::arguments);
  return passed;
}

}  // namespace ropewalk::preload
