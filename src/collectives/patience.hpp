// How long a rank waits inside a collective for others of its node that do not come.
#pragma once

#include <cstdint>

#include "node/team.hpp"

namespace ropewalk::collectives {

class Patience final : public node::Watcher {
 public:
  Patience(node::Team& team, int timeout_s);
  // Throws Error(peer_dead) when the call under way has been waited in for the time-out. Its clock
  // starts at the first look, so that calls which wait for a moment only read none.
  void look() override;
  void lost(int /*rank*/) override {}  // the team says it

 private:
  node::Team& team_;
  int timeout_s_;
  std::uint64_t call_ = 0;  // that is under way
  std::int64_t since_ns_ = 0;
};

}  // namespace ropewalk::collectives
