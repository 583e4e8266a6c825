// Checks that all ranks make together, so that an error of one is an error of all and none is left
// waiting: facts are exchanged first, acted on afterwards.
#pragma once

#include <cstdint>
#include <exception>
#include <new>
#include <optional>
#include <span>
#include <string>

#include "mpi/joint.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::halo {

// Collective. Runs `body` on every rank; what it throws on any rank is thrown on all. `body` itself
// must not communicate.
template <class Body>
void jointly(mpi::Comm comm, Body&& body) {
  std::optional<Error> error;
  try {
    body();
  } catch (const Error& caught) {
    error = caught;
  } catch (const std::bad_alloc&) {
    error = Error(ErrorCode::memory, "halo: out of memory");
  } catch (const std::exception& caught) {
    error = Error(ErrorCode::internal, std::string("halo: ") + caught.what());
  }
  mpi::share_error(comm, error);
}

// Something that all ranks must have passed alike.
struct Fact {
  std::string name;
  std::int64_t value;
};

// Collective, with the same number of facts on every rank. Throws Error(argument) on every rank,
// naming the first fact that differs.
void agree(mpi::Comm, std::span<const Fact> facts);

}  // namespace ropewalk::halo
