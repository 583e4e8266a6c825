// Strategy::direct: ranks of one node read each other's faces where they lie. No message, nothing
// packed: one copy, strided on both sides, made by the receiver.
#pragma once

#include <cstdint>
#include <memory>
#include <vector>

#include "halo/flags.hpp"
#include "halo/strided_copy.hpp"
#include "node/team.hpp"
#include "transport/lane_set.hpp"

namespace ropewalk::halo {

// What one neighbour has for this rank: a copy for each field.
struct Incoming {
  int peer;
  FlagLine* ready;  // both in the block of the neighbour
  FlagLine* done;
  std::vector<StridedCopy> copies;
  std::uint64_t taken = 0;  // exchange whose data were copied
};

// An exchange through shared memory, made once and run often; start/test/wait allocate nothing.
//
// Exchange k of one rank: raise `ready` to k; copy from each neighbour whose `ready` is k, then
// raise one's `done` line in its block to k; finished when all `done` lines of the own block are k.
// The copies are made in test() and wait(), so that start() is quick and the neighbours' memory is
// read by the core that wants the data.
class Direct {
 public:
  // `team` may be null where nothing comes in and nothing is awaited.
  Direct(std::shared_ptr<transport::LaneSet> lanes, node::Team* team, FlagBlock flags,
         std::vector<Incoming> incoming, std::vector<int> outgoing);
  // Waits for what was started. While an exception unwinds the stack, or after an error, it gives
  // up instead: neighbours are let go, and those that still want its data get an error.
  ~Direct();
  Direct(const Direct&) = delete;
  Direct& operator=(const Direct&) = delete;

  void start();
  bool test();
  void wait();

  std::size_t bytes() const noexcept { return bytes_; }  // that come in; as many are read by others

 private:
  template <class Body>
  void guarded(Body&& body);  // after an error nothing more can be started
  bool advance();
  bool take_all();
  bool released() const noexcept;
  void give_up() noexcept;

  std::shared_ptr<transport::LaneSet> lanes_;  // keeps the team
  node::Team* team_;
  FlagBlock flags_;
  std::vector<Incoming> incoming_;
  std::vector<int> outgoing_;  // directions whose done lines are awaited
  std::size_t bytes_ = 0;
  std::size_t streaming_bytes_;
  std::uint64_t exchange_ = 0;
  unsigned tests_ = 0;
  bool started_ = false;
  bool failed_ = false;
  int exceptions_before_;  // on their way when it was made
};

}  // namespace ropewalk::halo
