// What a Collectives is made of.
#pragma once

#include <cstdint>
#include <memory>

#include "collectives/backend.hpp"
#include "collectives/engine.hpp"       // for those who ask the backend for its parts
#include "collectives/nodes/nodes.hpp"  // the same
#include "collectives/worker.hpp"
#include "ropewalk/detail/unwinding.hpp"

namespace ropewalk {

struct Collectives::State {
  int rank = 0;
  int size = 1;
  collectives::BackendFacts facts;
  std::unique_ptr<collectives::Backend> backend;  // makes the calls
  collectives::Worker worker{&refuse, this};      // runs nonblocking calls
  detail::Unwinding unwinding;

  // Runs `call` here, or behind the nonblocking calls that are still under way. What it throws on
  // this rank alone is an error of the others, too, wherever they would wait for this rank.
  template <class Call>
  void run(Call&& call) {
    worker.drain();
    const std::uint64_t before = backend->calls();
    try {
      call();
    } catch (...) {
      backend->rescue(before);
      throw;
    }
  }

 private:
  static void refuse(void* state) noexcept;
};

}  // namespace ropewalk
