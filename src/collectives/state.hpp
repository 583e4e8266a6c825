// What a NodeCommunicator is made of.
#pragma once

#include <memory>
#include <optional>
#include <string>

#include "collectives/engine.hpp"
#include "collectives/worker.hpp"
#include "mpi/mpi.hpp"

namespace ropewalk {

struct NodeCommunicator::State {
  mpi::Comm comm;  // the caller's; for calls that MPI must make
  int rank = 0;
  int size = 1;
  std::string reason;                           // why there is no engine
  std::string attach_reason;                    // why it does not attach private memory
  std::unique_ptr<collectives::Engine> engine;  // null: every call goes to MPI
  collectives::Worker worker;                   // runs nonblocking calls

  // Runs `call` here, or behind the nonblocking calls that are still under way.
  template <class Call>
  void run(Call&& call) {
    worker.drain();
    call();
  }
};

}  // namespace ropewalk
