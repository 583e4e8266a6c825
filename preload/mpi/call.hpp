// One intercepted call: served by the communicator's team, or passed on.
#pragma once

#include <exception>

#include "collectives/state.hpp"
#include "communicators.hpp"
#include "datatypes.hpp"
#include "local_mpi.hpp"
#include "statistics.hpp"
#include "windows.hpp"

namespace ropewalk::preload {

// Runs serve(team); an exception becomes an error of the communicator.
template <class Serve>
int serve_now(Word comm, NodeCommunicator& team, Serve& serve, bool& served) noexcept {
  try {
    // What it takes to begin a call may fail on this rank alone: the others are told.
    team.state().run([&] { served = serve(team); });
    return 0;
  } catch (const std::exception& error) {
    return raise({comm}, error.what());
  } catch (...) {
    return raise({comm}, "unknown exception");
  }
}

// serve(team) returns false, before anything has been done, for arguments that MPI must judge: an
// error that all ranks make, since MPI does not come back to the others. again() is the call made
// by MPI once more, after it was served and without harm to its result, to compare their times; it
// returns a negative number where that cannot be.
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
    watch.passed(entry == nullptr ? Reason::outside : entry->reason);
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
