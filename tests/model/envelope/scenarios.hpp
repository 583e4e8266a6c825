// Short programs of two ranks, one of which sends messages through a slot of the drop-in
// (preload/mpi/envelope.hpp). What MPI does is one flag: whoever has the descriptor knows all that
// its sender knew.
#pragma once

#include <ostream>
#include <span>

#include "model/model.hpp"

namespace ropewalk::model::envelope {

struct Scenario {
  const char* name;
  bool together = false;  // the receiver shows where the data goes, so that the sender helps
  bool keeps = false;     // the sender copies its data away where it can
  bool dies = false;      // the sender dies while it does so
  bool looks = false;     // the receiver looks at the slot before it has the descriptor
  int messages = 2;       // one after the other through the same slot
};
inline std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
  return out << scenario.name;
}

std::span<const Scenario> scenarios();
const Scenario* find_scenario(const char* name);  // null where there is none

Result explore(const Scenario& scenario, const Options& options = {});

}  // namespace ropewalk::model::envelope
