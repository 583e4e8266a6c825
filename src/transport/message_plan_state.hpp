// What a plan of messages holds, and how each strategy drives it.
#pragma once

#include <exception>
#include <memory>
#include <span>
#include <vector>

#include "ropewalk/detail/unwinding.hpp"
#include "ropewalk/endpoint.hpp"
#include "transport/lane_set.hpp"
#include "transport/part.hpp"

namespace ropewalk::transport {

// Messages may have these tags, both included.
struct TagLimits {
  int least = 0;
  int most = max_message_tag;
};

// The constructor takes all memory. One thread of the caller at a time drives it, but for
// exchange_lane(), which takes one thread for each lane.
class MessagePlanState {
 public:
  MessagePlanState(std::shared_ptr<LaneSet> set, std::span<const Message> messages,
                   const TagLimits& tags = {});
  MessagePlanState(const MessagePlanState&) = delete;
  MessagePlanState& operator=(const MessagePlanState&) = delete;

  void start(Strategy strategy);
  bool test();
  void wait();
  void cancel() noexcept;
  // The end of a plan: waits, or cancels where an exception is on its way.
  void leave() noexcept;
  void exchange_lane(int lane);
  int lanes() const noexcept { return set_->lanes(); }
  std::size_t send_bytes() const noexcept { return send_bytes_; }

 private:
  void make_steps(std::span<const mpi::Comm> lanes);
  void make_lanes(std::span<const mpi::Comm> lanes);
  void check_start(Strategy strategy) const;
  void start_lanes() noexcept;
  bool advance() noexcept;
  bool advance_steps() noexcept;
  void wait_quietly() noexcept;
  void wait_for_lanes() noexcept;
  bool hopeless() noexcept;
  void give_up() noexcept;
  void stop() noexcept;
  void abandon() noexcept;
  void finish();
  std::exception_ptr take_errors() noexcept;

  std::shared_ptr<LaneSet> set_;
  std::size_t send_bytes_ = 0;
  std::int64_t awake_ns_ = 0;  // of a wait, before it sleeps
  // The same parts in the two orders in which they are posted; each order has neighbouring parts
  // in neighbouring requests. One strategy runs at a time, so they share the requests.
  std::vector<Part> by_step_;
  std::vector<Part> by_lane_;
  std::vector<mpi::Request> requests_;
  std::vector<Batch> steps_;
  std::vector<Batch> all_;  // one
  std::vector<LaneWork> lanes_;
  SharedWork shared_;  // of lanes_

  Strategy strategy_ = Strategy::concurrent;
  bool started_ = false;
  bool cancelled_ = false;
  bool abandoned_ = false;  // a rank has died, or an exception has taken it away
  std::size_t step_ = 0;
  unsigned tests_ = 0;
  detail::Unwinding unwinding_;
};

}  // namespace ropewalk::transport
