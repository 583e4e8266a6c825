// Short sequences of calls, run by the real collectives on the real team, that check what they get.
#pragma once

#include <ostream>
#include <span>

#include "model/model.hpp"

namespace ropewalk::model {

struct Rank;

struct Scenario {
  const char* name;
  void (*run)(Rank&);
  std::size_t chunk_bytes = 64;  // of staging areas
  std::size_t copied_bytes = 0;  // private buffers up to here are copied beside the slots
  std::size_t piece_bytes = 64;  // of such a copy
  std::size_t pushed_bytes = ~std::size_t{0};  // from here on owners write instead of copying
};
inline std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
  return out << scenario.name;
}

std::span<const Scenario> scenarios();
std::span<const Scenario> tiny_scenarios();  // few enough schedules to run each, with two ranks
const Scenario* find_scenario(const char* name);  // null where there is none

Result explore(int ranks, const Scenario& scenario, const Options& options = {});

}  // namespace ropewalk::model
