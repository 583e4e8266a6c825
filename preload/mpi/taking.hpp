// A message that has come: told from the program's own bytes, and copied to where it was to be
// received.
#pragma once

#include <cstddef>
#include <cstdint>

#include "collectives/datatypes.hpp"
#include "functions.hpp"

namespace ropewalk::preload::messages {

// Where a receive goes.
struct Destination {
  void* buffer = nullptr;
  int count = 0;
  collectives::Elements elements;
  bool direct = false;  // elements of a predefined type, side by side: copied here, else by MPI
  Word comm = 0;
};
// False for a receive that no descriptor can be for: it has no room for a large message, or MPI
// must judge its arguments.
bool may_be_announced(void* buffer, int count, Word type, Word comm, Destination&) noexcept;

struct Taken {
  int code = 0;             // of MPI's, of the receive
  std::int64_t bytes = -1;  // received; -1: it was the program's own message, the status is right
};
// What a completed receive has brought. Copies the data where that was a descriptor.
Taken take(const Destination&, const void* status) noexcept;
// Sets the status of a receive to what was taken.
void mend(const Taken&, void* status) noexcept;

}  // namespace ropewalk::preload::messages
