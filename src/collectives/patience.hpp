// Patience limits how long a rank waits inside a collective for others of its node that do not
// come.
#pragma once

#include <cstdint>

#include "node/team.hpp"

namespace ropewalk::collectives {

class Patience final : public node::Watcher {
 public:
  Patience(node::Team& team, int timeout_s);
  // Throws Error(peer_dead) when this rank has waited in the call under way for the time-out. The
  // time begins at the first look, so that calls that wait for a moment only read no clock.
  void look() override;
  void lost(int /*rank*/) override {}  // the team itself reports a lost rank

 private:
  node::Team& team_;
  int timeout_s_;
  std::uint64_t call_ = 0;  // the call under way
  std::int64_t since_ns_ = 0;
};

}  // namespace ropewalk::collectives
