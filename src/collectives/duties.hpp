// The duties of a rank towards the others of a bulk call: the phases that they wait for. A rank
// that cannot do its part finishes these phases all the same, marked as failed, so that the others
// get an error and do not wait for ever.
#pragma once

#include <cstddef>
#include <cstdint>
#include <utility>

#include "node/team.hpp"

namespace ropewalk::collectives {

class Duties {
 public:
  explicit Duties(node::Team& team) noexcept : team_(team) {}

  // From here to the end of the call all ranks wait for a phase of all.
  void owe_phases() noexcept { owed_ = Owed::phases; }
  // From here to the end of the call others wait for a phase of this rank, which waits for none of
  // theirs.
  void owe_a_phase() noexcept { owed_ = Owed::a_phase; }
  void owe_nothing() noexcept { owed_ = Owed::nothing; }
  // Shows the phase of owe_a_phase().
  std::uint64_t finish_owed_phase() noexcept {
    owed_ = Owed::nothing;
    return team_.phases().finish();
  }

  // A phase of all ranks inside a bulk call. Throws on every rank where one has failed.
  void synchronize();
  // The team's staging area, for calls in which the others next wait for a phase of this rank:
  // where there is no memory, they find that it has failed in it.
  void reserve_staging(std::size_t bytes);
  // The last phase of a call, which all ranks finish and wait for. Returns its number, for
  // check_complete().
  std::uint64_t finish(bool complete);
  // Throws where a rank whose phase was waited for has failed in it.
  void check_complete(std::uint64_t phase) const;
  // For a call that an exception ends here. `unread`: nobody reads this rank's buffers, and nobody
  // waits for its phases.
  void settle(bool unread);

  // A buffer of another rank could not be read. Throws Error(peer_dead) if the rank turns out to be
  // dead.
  [[noreturn]] void throw_unreadable() const;

 private:
  enum class Owed : std::uint8_t { nothing, a_phase, phases };

  node::Team& team_;
  Owed owed_ = Owed::nothing;  // of the call under way
};

}  // namespace ropewalk::collectives
