// Short programs of two or three ranks that lock a rank's memory as readers and as writers
// (preload/mpi/ticket_lock.hpp).
#pragma once

#include <array>
#include <ostream>
#include <span>
#include <string_view>

#include "model/model.hpp"

namespace ropewalk::model::locks {

// The locks that a rank takes, one after the other: w as the writer, r as a reader.
struct Scenario {
  const char* name;
  int ranks = 2;
  std::array<std::string_view, max_ranks> locks{};
};
inline std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
  return out << scenario.name;
}

std::span<const Scenario> scenarios();
const Scenario* find_scenario(const char* name);  // null where there is none

Result explore(const Scenario& scenario, const Options& options = {});

}  // namespace ropewalk::model::locks
