// How an intercepted call that does not block is started on the thread of its communicator, or
// passed on to MPI.
#pragma once

#include <cstddef>
#include <exception>
#include <functional>
#include <memory>
#include <utility>

#include "call.hpp"

namespace ropewalk::preload {

// What the thread is to do.
using StartedCall = std::function<void(Collectives&)>;

// Such a call on the thread.
struct ServedStart {
  OwnRequest* own;
  Collectives* team;
  StartedCall call;
  Watch watch;

  void operator()() {
    int code = 0;
    try {
      call(*team);
    } catch (const std::exception& error) {
      code = error_code(error.what());
    } catch (...) {
      code = error_code("unknown exception");
    }
    watch.served(team->last_path());  // from its start to its end
    // Datatypes are let go of before the program knows: it may end MPI then.
    call = nullptr;
    own->complete(code);
  }
};

// Starts call(team) if the communicator serves it: begin(entry) gives the call, or an empty one for
// what MPI must judge. obstacle(entry) says why MPI has to serve it all the same, from what is the
// same on all ranks.
template <class Obstacle, class Begin, class Pass>
int start_or_pass(Function function, std::size_t bytes, Word word, void* request, Obstacle obstacle,
                  Begin begin, Pass pass) {
  CommunicatorEntry* entry = entry_as_it_is(clean(word));
  Watch watch(function, bytes);
  const auto pass_for = [&](Reason reason) {
    const int code = pass();
    watch.passed(reason);
    return code;
  };
  // Never makes a team: that waits for the other ranks.
  if (entry == nullptr) return pass_for(Reason::new_communicator);
  if (entry->reason == Reason::no_memory) [[unlikely]] {
    OwnRequest::give_none(request);
    return raise({clean(word)}, text(Reason::no_memory));
  }
  if (entry->team == nullptr) return pass_for(entry->reason);
  if (!entry->starts) return pass_for(Reason::nonblocking);
  if (const Reason reason = obstacle(*entry); reason != Reason::none) return pass_for(reason);
  collectives::Worker& worker = entry->team->state().worker;
  try {
    StartedCall call = begin(*entry);
    if (call == nullptr) return pass_for(Reason::arguments);
    auto own = std::make_unique<OwnRequest>();
    auto job = collectives::Worker::prepare(
        ServedStart{own.get(), entry->team.get(), std::move(call), watch});
    own->give_to(request);
    (void)own.release();
    worker.enqueue(std::move(job));
    return 0;
  } catch (const std::exception& error) {
    worker.enqueue_refusal();
    OwnRequest::give_none(request);
    return raise({clean(word)}, error.what());
  }
}

}  // namespace ropewalk::preload
