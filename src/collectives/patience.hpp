// Patience limits how long a rank waits inside a collective for others of its node that do not
// come.
#pragma once

#include "collectives/call_timeout.hpp"
#include "node/team.hpp"

namespace ropewalk::collectives {

class Patience final : public node::Watcher {
 public:
  Patience(node::Team& team, int timeout_s);
  // Throws Error(peer_dead) when this rank has waited in the call under way for the time-out.
  void look() override;
  void lost(int /*rank*/) override {}  // the team itself reports a lost rank

 private:
  node::Team& team_;
  CallTimeout timeout_;
};

}  // namespace ropewalk::collectives
