#include "messages/watch.hpp"

#include <string>

#include "messages/engine.hpp"
#include "mpi/progress.hpp"

namespace ropewalk::messages {
namespace {

[[noreturn]] void throw_gone(const MessageOperation& operation) {
  const std::string who = operation.peer == any_source
                              ? "all other ranks have"
                              : "rank " + std::to_string(operation.peer) + " has";
  throw Error(ErrorCode::peer_dead, std::string(operation.is_send ? "send" : "receive") + ": " +
                                        who + " ended the channel: the message will never " +
                                        (operation.is_send ? "be received" : "come"));
}

}  // namespace

void MessageWatch::require_whole() const {
  if (engine_.near() != nullptr && engine_.near()->team().waits().broken()) {
    throw Error(ErrorCode::peer_dead,
                "channel: a rank has died: this channel cannot be used any more; end the job");
  }
  if (liveness_ != nullptr) liveness_->require_whole();
}

void MessageWatch::tested(const MessageOperation* awaited) {
  constexpr unsigned tests_per_look = 64;
  if (++tests_ % tests_per_look != 0) return;
  wait_for(awaited);
  if (NearRanks* near = engine_.near(); near != nullptr) {
    near->team().waits().look_around();
  } else {
    mpi::progress();
    look();
  }
}

// A rank that has ended its channel sends and takes nothing more. What it had sent before is looked
// for once more, now that nothing can follow.
void MessageWatch::look() {
  if (liveness_ != nullptr) liveness_->look();
  if (awaited_ == nullptr || awaited_->complete || !is_gone(*awaited_)) return;
  engine_.advance();
  if (awaited_->complete) return;
  // Both ranks know of a receive that is not posted any more, and its sender has not ended before
  // it was over.
  const bool is_under_way = !awaited_->is_send && !awaited_->posted;
  if (!is_under_way) throw_gone(*awaited_);
}

void MessageWatch::lost(int place) { engine_.near()->throw_dead(place); }

// Tells whether the other rank, or every rank that it may be, has ended its channel.
bool MessageWatch::is_gone(const MessageOperation& operation) const {
  if (operation.peer != any_source) return has_ended(operation.peer);
  for (int rank = 0; rank < engine_.size(); ++rank) {
    if (rank != engine_.rank() && !has_ended(rank)) return false;
  }
  return engine_.size() > 1;
}

bool MessageWatch::has_ended(int rank) const {
  return rank != engine_.rank() && engine_.is_near(rank) &&
         engine_.near()->has_ended(engine_.near()->place_of(rank));
}

}  // namespace ropewalk::messages
