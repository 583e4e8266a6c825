// The three columns of a case: the call of the plain MPI, ropewalk's, and the same loads and stores
// without synchronisation. With ranks.cc, the files of bench/ that know src/.
#pragma once

#include <memory>
#include <vector>

#include "collectives/shape.hpp"
#include "common/ranks.hpp"
#include "kernels/kernels.hpp"
#include "ropewalk/collectives.hpp"

namespace ropewalk::bench {

// The plain MPI's communicator: a duplicate of the world's, which nobody else uses.
class Plain {
 public:
  explicit Plain(const Ranks& ranks);
  ~Plain();
  Plain(const Plain&) = delete;
  Plain& operator=(const Plain&) = delete;

  struct State;
  const State& state() const { return *state_; }

 private:
  std::unique_ptr<State> state_;
};

// Every rank's buffers as this process maps them; empty where it does not.
struct Everybody {
  std::vector<float*> send;
  std::vector<float*> receive;
};
// Collective; buffers lie in the arenas of the processes.
Everybody everybody(const Ranks& ranks, Collectives& node, float* send, float* receive);

// Returns the ranks of each node, the first one's node first; empty where ropewalk does not serve
// the ranks.
std::vector<int> ranks_on_nodes(Collectives& node);

// Tells what was written into a send buffer apart from what was there before.
using Serial = unsigned;

// `iterations` calls, one after the other; microseconds of this rank for all of them. With
// `rewritten` the send buffer gets flat_value(rank, first + i) before call i.
struct Run {
  CallShape shape;
  float* send = nullptr;
  float* receive = nullptr;
  int iterations = 1;
  bool rewritten = false;
  Serial first = 0;
  // It is for rewritten buffers. Where it is given, each call is timed alone, after a barrier of
  // this communicator, and the time is that of the calls. Where it is null, the time is that of
  // rewriting and calls together.
  Collectives* apart = nullptr;
};
double time_plain(const Plain& plain, const Run& run);
double time_ropewalk(Collectives& node, const Run& run);
double time_limit(const Everybody& all, const Run& run, kernels::Stores stores);
double time_rewriting(const Run& run);  // the rewriting alone

}  // namespace ropewalk::bench
