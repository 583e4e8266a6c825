// Strategy::put: ranks of one node write faces into the memory of the neighbour that reads them. An
// exchange moves no byte: it only says that they are there.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <vector>

#include "halo/carrier.hpp"
#include "halo/flags.hpp"
#include "node/team.hpp"
#include "ropewalk/detail/unwinding.hpp"
#include "transport/lane_set.hpp"

namespace ropewalk::halo {

// A neighbour over one link, as this rank maps its memory.
struct Meeting {
  int peer;
  const FlagLine* started;  // of the peer, in its block
  FlagLine* left;           // of this rank, there
  const FlagLine* ready;    // of the parts that come from there, in its block; null without parts
};

// Faces in parts. A line for each part of each face that this rank sends lies in its own block:
// number n says that the part is written for exchange n. Only the thread that hands over the part
// writes it.
struct PartLines {
  struct Face {
    FlagLine* ready = nullptr;           // of what this rank sends; null: no face
    const FlagLine* arriving = nullptr;  // of what comes in from there
  };
  int parts = 0;  // 0: faces are handed over by start()
  std::vector<Face> faces;
};

// A receiver has two places for each face, which take turns: exchange n uses those of turn n % 2.
// The sender writes there before start(n), the receiver reads between its wait(n) and start(n + 1).
// start(n) raises `started` to n, and wait(n) waits until all neighbours have done so. No other
// signal is needed.
//
// Invariants, for two neighbours A and B:
// 1. What A wrote for n is seen by B after its wait(n): B has acquired A's `started` at n or later.
// 2. A writes for n + 1 only after its wait(n), and so after B's start(n), before which B has read
//    for the last time what it received in n - 1: that is the place that A writes to.
// 3. In n + 1 A writes to the other place than the one that B reads after its wait(n), and A's
//    wait(n + 1), before which it writes nothing more, ends after B's start(n + 1).
// 4. B's memory goes back when all neighbours have left it, each when its exchange ends for good
//    (FlagBlock::retire), after an error too: A may write for an exchange to which B no longer
//    comes. What neighbours of a dead rank hold for it is lost.
// 5. A rank that gives up sets a mark beside the number, which stays: neighbours still finish the
//    exchange that it had started, since all its faces are there, and get an error in an exchange
//    that it has not started. The rank writes no more faces, because it does not know whether
//    neighbours have read the places.
//
// With parts, start(n) says only that this rank has read what came in n - 1, and the `ready` line
// of a part says that it is there. wait(n) waits for both. So 1 holds for a part with its `ready`
// in place of `started`. 2 to 4 hold as they are: they need what `started` says of reading, and
// that A writes for n between its wait(n - 1) and its wait(n). Of 5 this changes: neighbours finish
// an exchange of a rank that gave up where all its parts are there.
class PutCarrier final : public Carrier {
 public:
  // `team` may be null where there are no meetings. What this rank receives lies in `flags`.
  PutCarrier(std::shared_ptr<transport::LaneSet> lanes, node::Team* team, FlagBlock flags,
             std::vector<Meeting> meetings, PartLines lines, std::size_t send_bytes);
  // Waits for what was started. While an exception unwinds the stack it gives up instead. Before
  // settle() it touches no neighbour: where one has failed to make its own, its flags are gone.
  ~PutCarrier() override;

  void start() override;
  bool test() override;
  void wait() override;

  Strategy strategy() const noexcept override { return Strategy::put; }
  std::size_t send_bytes() const noexcept override { return send_bytes_; }
  std::size_t turn() const noexcept override { return exchange_ % 2; }
  bool writable() const noexcept override { return !failed_; }  // it has not given up
  bool ready(int direction, int part) override;
  bool arrived(int direction, int part) const override;
  std::optional<PartOfFace> missing() const override;
  void give_up() noexcept override;
  void settle() noexcept override { settled_ = true; }

 private:
  template <class Body>
  void guarded(Body&& body);  // after an error nothing more can be started
  bool all_started();
  bool all_ready(const Meeting& meeting) const noexcept;
  void end() noexcept;
  void leave() noexcept;

  std::shared_ptr<transport::LaneSet> lanes_;  // keeps the team
  node::Team* team_;
  FlagBlock flags_;
  std::vector<Meeting> meetings_;
  PartLines lines_;
  std::size_t send_bytes_;
  std::uint64_t exchange_ = 0;
  std::size_t met_ = 0;  // meetings seen to have started this exchange
  unsigned tests_ = 0;
  bool started_ = false;
  bool settled_ = false;
  bool failed_ = false;
  detail::Unwinding unwinding_;
};

}  // namespace ropewalk::halo
