// Strategies sequential, concurrent and threaded: faces travel as messages of MPI's.
#pragma once

#include <memory>

#include "halo/carrier.hpp"
#include "halo/draft.hpp"
#include "halo/workers.hpp"
#include "ropewalk/endpoint.hpp"

namespace ropewalk::halo {

// Messages, and the copies around them. Several carriers may share them, one of which is under way
// at a time.
struct PlannedMessages {
  Draft draft;
  std::shared_ptr<Workers> workers;  // share the copies
  MessagePlan plan;  // after the draft: its end waits for what is under way in the staging buffer
};

class PlanCarrier final : public Carrier {
 public:
  PlanCarrier(std::shared_ptr<PlannedMessages> messages, Strategy strategy);

  void start() override;
  bool test() override { return messages_->plan.test(); }
  void wait() override;
  void give_up() noexcept override { messages_->plan.cancel(); }

  Strategy strategy() const noexcept override { return strategy_; }
  std::size_t send_bytes() const noexcept override { return messages_->plan.send_bytes(); }
  int lanes() const noexcept override;
  void exchange_lane(int lane) override { messages_->plan.exchange_lane(lane); }

 private:
  std::shared_ptr<PlannedMessages> messages_;
  Strategy strategy_;
};

}  // namespace ropewalk::halo
