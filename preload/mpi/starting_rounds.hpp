// How an intercepted call that does not block is started without a thread (started_round.hpp).
#pragma once

#include <cstddef>
#include <exception>
#include <memory>
#include <utility>

#include "call.hpp"
#include "persistent_plans.hpp"

namespace ropewalk::preload {

// Adds a round to the table of requests and begins it, or throws and does neither.
void start_round(const CommunicatorEntry&, Word comm, RoundPlan, void* request, const Watch&);

// This rank cannot start a round that the others start.
int refuse_round(Word comm, void* request, const char* reason) noexcept;

// On a communicator with a log: starts what plan(team) says. A plan is none where MPI must judge
// the arguments.
template <class Plan, class Pass>
int serve_round(Function function, std::size_t bytes, Word word, void* request, Plan make,
                Pass pass) noexcept {
  const Word comm = clean(word);
  const CommunicatorEntry& entry = *entry_as_it_is(comm);
  Watch watch(function, bytes);
  try {
    if (OptionalPlan plan = make(*entry.team)) {
      start_round(entry, comm, *std::move(plan), request, watch);
      return 0;
    }
  } catch (const std::exception& error) {
    return refuse_round(comm, request, error.what());
  }
  const int code = pass();
  watch.passed(Reason::arguments);
  return code;
}

}  // namespace ropewalk::preload
