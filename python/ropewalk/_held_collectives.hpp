// A communicator of collectives, as Python holds it: how it comes to be and ends.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <utility>

#include "_core.hpp"
#include "_left_collectives.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::python {

struct HeldCollectives : Held<Collectives> {
  HeldCollectives(std::unique_ptr<SplitCommunicator> its_own, std::unique_ptr<Collectives> made)
      : Held(std::move(made)), own(std::move(its_own)) {}
  HeldCollectives(HeldCollectives&&) = default;
  ~HeldCollectives() {
    if (is_abandoned()) {
      static_cast<void>(own.release());
    } else {
      drop();
    }
  }
  Collectives& get() const {
    tidy_left_collectives();
    if (value == nullptr) {
      throw Error(ErrorCode::argument, "communicator: closed, expected an open one");
    }
    return *value;
  }
  void close();
  // The program ends. What was started is completed. Ranks of one node hear in shared memory that
  // this one makes no more calls; over nodes that would take messages, which MPI might wait for.
  void end();
  // The program has lost it without close(): it may be about to end.
  void drop();
  // The MPI communicator of split(), where that made this one; given back after `value`.
  std::unique_ptr<SplitCommunicator> own;
  int calls = 0;         // that threads are in; guarded by the GIL, as what follows
  bool started = false;  // a call that a thread of the communicator makes
};

std::unique_ptr<HeldCollectives> make_collectives(std::optional<std::uintptr_t> handle,
                                                  int threads);
// Returns null on a rank that joins none of the new communicators.
std::unique_ptr<HeldCollectives> split(HeldCollectives& self, std::optional<std::uintptr_t> handle,
                                       std::optional<int> color, int key, int threads);

}  // namespace ropewalk::python
