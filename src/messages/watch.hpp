// What a rank that waits for a message looks at beside it: whether the rank that it waits for still
// takes part.
#pragma once

#include "messages/operation.hpp"
#include "node/liveness.hpp"
#include "node/team.hpp"

namespace ropewalk::messages {

class MessageEngine;

class MessageWatch final : public node::Watcher {
 public:
  explicit MessageWatch(MessageEngine& engine) noexcept : engine_(engine) {}

  // Watches ranks on other nodes; `liveness` is null where nobody notices their death, and outlives
  // this.
  void watch_far(node::Liveness* liveness) noexcept { liveness_ = liveness; }
  // Throws Error(peer_dead) where a rank is known to have died.
  void require_whole() const;
  void wait_for(const MessageOperation* awaited) noexcept { awaited_ = awaited; }
  // A program that tests or probes instead of waiting, here in vain, progresses MPI and notices
  // dead ranks now and then.
  void tested(const MessageOperation* awaited);
  // Throws Error(peer_dead) where the message that is waited for can never come or never be taken.
  void look() override;
  // Throws: says the number that the rank has in the channel.
  void lost(int place) override;

 private:
  bool is_gone(const MessageOperation&) const;
  bool has_ended(int rank) const;

  MessageEngine& engine_;
  node::Liveness* liveness_ = nullptr;
  const MessageOperation* awaited_ = nullptr;
  unsigned tests_ = 0;
};

}  // namespace ropewalk::messages
