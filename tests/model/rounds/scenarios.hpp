// Short programs of two or three ranks that share the work of rounds
// (preload/mpi/round_claims.hpp).
#pragma once

#include <array>
#include <ostream>
#include <span>

#include "model/model.hpp"

namespace ropewalk::model::rounds {

struct Scenario {
  const char* name;
  int ranks = 2;
  std::array<int, max_ranks> tasks{1, 1, 1};  // of each rank
  int rounds = 2;
  bool in_place = false;  // results take the place of what is sent
  // Rank 1 does nothing after it has begun a round before rank 0 has completed it.
  bool late = false;
};
inline std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
  return out << scenario.name;
}

std::span<const Scenario> scenarios();
const Scenario* find_scenario(const char* name);  // null where there is none

Result explore(const Scenario& scenario, const Options& options = {});

}  // namespace ropewalk::model::rounds
