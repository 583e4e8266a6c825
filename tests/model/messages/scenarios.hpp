// Short programs of messages, run by the real channel, that check what they get.
#pragma once

#include <ostream>
#include <span>

#include "model/model.hpp"
#include "ropewalk/channel.hpp"

namespace ropewalk::model::messages {

struct Rank;

struct Scenario {
  const char* name;
  void (*run)(Rank&);
  int ranks = 2;
  Mechanism force = Mechanism::none;
};
inline std::ostream& operator<<(std::ostream& out, const Scenario& scenario) {
  return out << scenario.name;
}

std::span<const Scenario> scenarios();
const Scenario* find_scenario(const char* name);  // null where there is none

Result explore(const Scenario& scenario, const Options& options = {});

}  // namespace ropewalk::model::messages
