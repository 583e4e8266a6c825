// Error notices make an error of one rank during a call over nodes an error of all ranks.
//
// A rank that cannot go on sends every other rank a notice that says why. A rank that waits, for a
// message of another node or for a flag of its own node, finds the notice and throws the same
// error.
#pragma once

#include <cstdint>
#include <memory>
#include <utility>
#include <vector>

#include "collectives/nodes/message_comms.hpp"
#include "node/liveness.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::collectives::nodes {

// A notice is sent in one message, as these bytes.
struct ErrorNotice {
  std::uint64_t call;  // the call that its sender has refused; 0 where it makes no more calls
  std::int64_t code;   // ErrorCode
  std::int64_t last;   // 1 where its sender refuses all later calls, too
  char text[488];
};
static_assert(sizeof(ErrorNotice) == 512);  // below every MPI's eager limit

// This class counts the calls of one rank on one communicator, and sends and receives the notices
// that concern them. Ranks make the same calls in the same order, so the number of a call is the
// same on all.
class ErrorNotices {
 public:
  // `liveness` is null where nobody notices the dead of other nodes. Both outlive the notices.
  ErrorNotices(MessageComms& comms, const NodeLayout& layout, node::Liveness* liveness);
  ~ErrorNotices();
  ErrorNotices(const ErrorNotices&) = delete;
  ErrorNotices& operator=(const ErrorNotices&) = delete;

  // Counts the calls that this rank has begun or refused. The reference stays valid.
  const std::uint64_t& calls() const noexcept { return calls_; }
  // Throws where no call can be made any more, or where another rank has refused this one already.
  void begin_call();
  void end_call() noexcept { in_call_ = false; }
  bool in_call() const noexcept { return in_call_; }
  // Must be called in a catch clause within a call. It throws what is being handled or, where that
  // follows from the death of a rank, Error(peer_dead). The others are told, and no later call can
  // be made.
  [[noreturn]] void fail_call();
  // Tells the others that this rank refuses its arguments before the call. They get an error,
  // unless they refuse theirs as well.
  void refuse_call(const char* reason) noexcept;
  // Tells the others the same for all calls to come, where an exception takes this rank away.
  void refuse_all_calls() noexcept;

  // Receives the notices that have come, and throws an error where one concerns the call under way.
  void look();

 private:
  // A call that this rank has refused. Where all ranks have refused it, each of them has sent this
  // one a notice; when these have come, no message of the call is left.
  struct Refusal {
    std::uint64_t call;
    int missing;  // notices of other ranks that have not come
  };

  [[noreturn]] void throw_reason() const;
  [[noreturn]] void explain();
  void refuse(ErrorCode code, bool last, const char* text) noexcept;
  void give_up() noexcept;
  void expect_notices() noexcept;
  void receive_outside_calls() noexcept;
  [[noreturn]] void prefer_notice();
  [[noreturn]] void tell_of_failure();
  void settle() noexcept;  // this is called before MPI frees the communicators
  void heed_early();
  void heed(const ErrorNotice& notice, int source);
  void count(const ErrorNotice& notice) noexcept;
  void send(const ErrorNotice& notice, int rank) noexcept;
  void send_all(const ErrorNotice& notice) noexcept;

  MessageComms& comms_;
  const NodeLayout& layout_;
  node::Liveness* liveness_;
  std::uint64_t calls_ = 0;
  bool in_call_ = false;
  std::uint64_t refused_ = 0;      // the last call that this rank has refused
  std::vector<Refusal> refusals_;  // those that miss notices, the oldest first
  // These are notices of calls that this rank has not begun yet, and the ranks that refuse them.
  std::vector<std::pair<ErrorNotice, int>> early_;
  bool broken_ = false;   // no call can be made any more
  ErrorNotice reason_{};  // the reason for that
  std::unique_ptr<ErrorNotice> spare_ = std::make_unique<ErrorNotice>();  // where memory is out
};

}  // namespace ropewalk::collectives::nodes
