// What is behind a Channel: the messages of one communicator, near and far, and the waiting for
// them.
#pragma once

#include <limits>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "messages/copy_threads.hpp"
#include "messages/device_buffers.hpp"
#include "messages/engine_keeper.hpp"
#include "messages/far.hpp"
#include "messages/near_ranks.hpp"
#include "messages/operation.hpp"
#include "messages/posted.hpp"
#include "messages/receiving.hpp"
#include "messages/sending.hpp"
#include "messages/watch.hpp"
#include "mpi/mpi.hpp"
#include "node/liveness.hpp"
#include "ropewalk/channel.hpp"
#include "ropewalk/detail/unwinding.hpp"
#include "tuning/limits.hpp"

namespace ropewalk::messages {

// What messages of an engine can be.
struct MessageReach {
  std::string reason;  // why none goes through shared memory; empty where some do
  // Tags are 0 to this. MPI has a bound of its own for messages that it carries.
  int tag_bound = std::numeric_limits<int>::max();
  std::size_t slot_bytes = 0;  // the longest message from any memory that does not wait
};

class MessageEngine final : public EngineKeeper {
 public:
  // Makes the engine. Collective.
  static std::shared_ptr<MessageEngine> create(mpi::Comm comm, const ChannelOptions&);
  ~MessageEngine();
  MessageEngine(const MessageEngine&) = delete;
  MessageEngine& operator=(const MessageEngine&) = delete;

  int rank() const noexcept { return rank_; }
  int size() const noexcept { return size_; }
  bool is_near(int rank) const noexcept { return near_ != nullptr && near_->place_of(rank) >= 0; }
  const MessageReach& reach() const noexcept { return reach_; }
  Mechanism last() noexcept {
    enter();
    return near_ != nullptr ? receiving_->last() : Mechanism::mpi;
  }

  void send(const void* data, std::size_t bytes, int to, int tag);
  MessageStatus receive(void* data, std::size_t bytes, int from, int tag);
  // Returns null where the message is complete.
  MessageOperation* start_send(const void* data, std::size_t bytes, int to, int tag);
  MessageOperation* start_receive(void* data, std::size_t bytes, int from, int tag);
  // Receives a message that comes within so many looks and needs nothing but to be copied.
  bool receive_now(void* data, std::size_t bytes, int from, int tag, unsigned looks,
                   MessageStatus&);
  std::optional<MessageStatus> probe(int from, int tag);

  bool test(MessageOperation&);
  void wait(MessageOperation&);
  // After the end of a message; throws what went wrong with it.
  MessageStatus finish(MessageOperation&);
  // Replaces finish() for a rank that an exception takes away: a message that both ranks have begun
  // is completed, any other is taken back.
  void withdraw(MessageOperation&) noexcept;

  // Moves everything on.
  void advance();
  bool has_messages_under_way() const noexcept;
  NearRanks* near() noexcept { return near_.get(); }

 private:
  explicit MessageEngine(mpi::Comm comm);
  void meet(mpi::Comm comm, const ChannelOptions&);
  void serve_near(Mechanism force, const Copiers&);
  MessageStatus complete(MessageOperation&);
  void take_back(MessageOperation&);

  int rank_;
  int size_;
  tuning::ChannelLimits limits_;
  MessageReach reach_;
  Posted posted_;
  OperationPool pool_;
  std::unique_ptr<node::Liveness> liveness_;   // of ranks on other nodes; null: not watched
  std::unique_ptr<NearRanks> near_;            // null: every message goes to MPI
  DeviceBuffers devices_;                      // unpins memory of the ranks above
  std::unique_ptr<CopyThreads> copy_threads_;  // null: the caller copies alone
  std::unique_ptr<Sending> sending_;
  std::unique_ptr<Receiving> receiving_;
  std::unique_ptr<Far> far_;  // null: all ranks are near
  MessageWatch watch_;
  detail::Unwinding unwinding_;
};

}  // namespace ropewalk::messages
