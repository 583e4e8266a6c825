// What a NodeCommunicator is made of.
#pragma once

#include <cstdint>
#include <exception>
#include <memory>
#include <optional>
#include <string>

#include "collectives/engine.hpp"
#include "collectives/nodes/nodes.hpp"
#include "collectives/worker.hpp"
#include "mpi/mpi.hpp"

namespace ropewalk {

struct NodeCommunicator::State {
  mpi::Comm comm;  // the caller's; for calls that MPI must make
  int rank = 0;
  int size = 1;
  std::string reason;                                  // why calls go to MPI
  std::string attach_reason;                           // why it does not attach private memory
  std::unique_ptr<collectives::Engine> engine;         // of ranks on one node
  std::unique_ptr<collectives::nodes::Nodes> nodes;    // of ranks on several; neither: through MPI
  collectives::Worker worker{&refuse, this};           // runs nonblocking calls
  int exceptions_before = std::uncaught_exceptions();  // on their way when it was made

  static void refuse(void* state) noexcept;  // see checks.hpp, tell_refusal()

  // Runs `call` here, or behind the nonblocking calls that are still under way. What it throws on
  // this rank alone is an error of the others, too, wherever they would wait for this rank.
  template <class Call>
  void run(Call&& call) {
    worker.drain();
    const std::uint64_t before = calls();
    try {
      call();
    } catch (...) {
      rescue(before);
      throw;
    }
  }

 private:
  std::uint64_t calls() const noexcept {
    if (engine != nullptr) return engine->team().calls();
    return nodes != nullptr ? nodes->calls() : 0;
  }
  void rescue(std::uint64_t before) noexcept;
};

}  // namespace ropewalk
