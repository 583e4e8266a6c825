// What an application does with a halo, and all of what it costs: faces are gathered out of a
// field, exchanged, and read where they arrive. An exchange that saves passes over memory, since
// faces are written where they are read, shows only here.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "common/ranks.hpp"
#include "common/statistics.hpp"
#include "comms/faces.hpp"

namespace ropewalk::bench {

struct StepColumn {
  std::string name;  // a strategy; "plain": messages of one thread; "limit": no exchange at all
  CopyWay stores = CopyWay::library;  // of the gathering: the faster of plain and streaming ones
  Summary us;                         // of a step, slowest rank
  bool verified = true;
};

struct StepResult {
  std::vector<StepColumn> columns;  // limit first, then plain, then what is possible here
  std::string wrong;

  const StepColumn& limit() const { return columns[0]; }
  const StepColumn& plain() const { return columns[1]; }
  const StepColumn& best() const;  // of the rest
  // Time beyond the gathering and reading that there must be: what the exchange costs.
  double cost_us(const StepColumn& column) const { return column.us.median - limit().us.median; }
};

struct StepOptions {
  int samples = 20;
  double sample_us = 5000;
  double budget_us = 200000;  // of a column
};

// Collective. `limit` gathers into memory of the rank's own and reads what it gathered the step
// before: the loads and stores of a step, on the same pages, without another rank.
StepResult measure_steps(const StepOptions&, const Ranks&, const CartesianGrid&, EndpointSet&,
                         const LocalLattice&);

}  // namespace ropewalk::bench
