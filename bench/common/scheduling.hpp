// What a benchmark may do about the scheduler of a shared machine: raise its own group, stay on its
// own cores.
#pragma once

#include <string>

#include "common/ranks.hpp"

namespace ropewalk::bench {

// Raises this session's autogroup to nice -20 where the kernel allows it, and puts it back at the
// end, or where a signal that ends programs takes the process away first; after SIGKILL the
// launcher does it (python/ropewalk/autogroup.py). Plain nice does nothing between sessions
// (sched(7), "The autogroup feature"). Collective; one at a time.
class RaisedGroup {
 public:
  RaisedGroup(const Ranks& ranks, bool wanted);
  ~RaisedGroup();
  RaisedGroup(const RaisedGroup&) = delete;
  RaisedGroup& operator=(const RaisedGroup&) = delete;
  // "nice -20", or why not: "not wanted", "not allowed", "no autogroups".
  const std::string& state() const noexcept { return state_; }

 private:
  int before_ = 0;
  std::string state_;
};

// What the end of a RaisedGroup does, for those that end without it. Safe in a signal handler.
void put_back_group() noexcept;

// Keeps this process on its share of the cores it may use: rank k of n on a node gets the k-th of
// n equal runs, at least one core. Returns the cores, as "0-3".
std::string pin_to_share(int node_rank, int node_size);
std::string allowed_cores();

}  // namespace ropewalk::bench
