#include "collectives/duties.hpp"

#include <chrono>
#include <string>
#include <thread>

#include "ropewalk/error.hpp"

namespace ropewalk::collectives {

void Duties::synchronize() {
  const std::uint64_t phase = team_.phases().finish();
  team_.phases().wait_for_all(phase);
  owed_ = Owed::nothing;  // where one has failed, all leave the call here
  // It may have failed in a later phase already, and waits for that one.
  while (team_.phases().failed_rank(team_.phases().finished() + 1) >= 0) team_.phases().finish();
  check_complete(phase);
  owed_ = Owed::phases;
}

void Duties::reserve_staging(std::size_t bytes) {
  try {
    team_.staging().reserve(bytes);
  } catch (...) {
    finish(false);
    throw;
  }
}

std::uint64_t Duties::finish(bool complete) {
  owed_ = Owed::nothing;
  const std::uint64_t phase = complete ? team_.phases().finish() : team_.phases().fail();
  team_.phases().wait_for_all(phase);
  return phase;
}

void Duties::check_complete(std::uint64_t phase) const {
  const int failed = team_.phases().failed_rank(phase);
  if (failed < 0) return;
  throw Error(
      ErrorCode::system,
      "collective: rank " + std::to_string(failed) +
          " could not do its part: it has met an error of its own, a private buffer of another "
          "rank could not be reached (process_vm_readv, XPMEM), or its communication memory "
          "is full; results are incomplete; see its error, check the buffers' addresses and "
          "counts, and ROPEWALK_ARENA_BYTES");
}

void Duties::settle(bool unread) {
  const Owed owed = std::exchange(owed_, Owed::nothing);
  if (owed == Owed::a_phase) {
    team_.phases().fail();
  } else if (owed == Owed::phases && unread) {
    team_.phases().skip();
  } else if (owed == Owed::phases) {
    finish(false);  // the others may still read this rank's buffers
  }
}

// The memory of a process that ends vanishes before the process itself, so the death of the rank is
// the better answer.
void Duties::throw_unreadable() const {
  constexpr int looks = 500;  // one a millisecond
  for (int look = 0; look < looks; ++look) {
    team_.waits().look_around();
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
  throw Error(
      ErrorCode::system,
      "send: the buffer of another rank could not be read with process_vm_readv; check that "
      "its address and count are valid there");
}

}  // namespace ropewalk::collectives
