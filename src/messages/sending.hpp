// The messages that this rank sends to ranks of its node.
#pragma once

#include <cstddef>
#include <memory>
#include <vector>

#include "messages/copy_threads.hpp"
#include "messages/device_buffers.hpp"
#include "messages/near_ranks.hpp"
#include "messages/operation.hpp"
#include "messages/outbox.hpp"
#include "tuning/limits.hpp"

namespace ropewalk::messages {

class Sending {
 public:
  Sending(NearRanks& near, const tuning::ChannelLimits& limits, DeviceBuffers& devices,
          Copiers copiers);
  // Hands the memory that others may look at to the ranks' board.
  ~Sending();
  Sending(const Sending&) = delete;
  Sending& operator=(const Sending&) = delete;

  // Sends at once what need not wait for its receiver; false where that is not possible now.
  bool send_now(const void* data, std::size_t bytes, int place, int tag) {
    Peer& peer = peers_[static_cast<std::size_t>(place)];
    if (!peer.waiting.empty() || !fits_slot(data, bytes)) return false;
    return put(peer, data, bytes, tag);
  }
  // Begins to send; the operation may be complete when this returns.
  void start(MessageOperation&, int place);
  // Moves everything on.
  void advance();
  // Forgets a message whose other rank is gone.
  void forget(MessageOperation& operation) noexcept { offered_.remove(operation); }
  bool idle() const noexcept { return waiting_ == 0 && offered_.empty(); }
  // Takes a message back that its receiver has not begun to take; false where it has.
  bool withdraw(MessageOperation&, int place) noexcept;

 private:
  struct Peer {
    Outbox outbox;
    OperationList waiting;    // for room, in the order they were started
    bool is_filling = false;  // a pipeline, in this round of advance()
  };
  bool put(Peer&, const void* data, std::size_t bytes, int tag);
  bool fits_slot(const void* data, std::size_t bytes) const;
  bool try_to_put(Peer&, MessageOperation&);
  channel::Reference describe(const MessageOperation&, Transfer&);
  bool try_first(Peer&, MessageOperation& first);
  bool advance(MessageOperation&);
  void read_answer(MessageOperation&);
  void copy_claimed(MessageOperation&);
  void copy_with_all(MessageOperation&);
  void tell_copied(MessageOperation&, std::uint32_t pieces) noexcept;
  void fill_in_turn(MessageOperation&);
  bool fill_pipeline(MessageOperation&);
  Error refusal(const MessageOperation&) const;
  void end(MessageOperation&, std::uint64_t state);
  Transfer& take_transfer();
  std::byte* take_buffer(std::size_t bytes);

  NearRanks& near_;
  const tuning::ChannelLimits& limits_;
  DeviceBuffers& devices_;
  Copiers copiers_;
  std::vector<Peer> peers_;  // by place
  std::size_t waiting_ = 0;  // operations that wait for room
  OperationList offered_;
  // Memory in the arena, free for later messages.
  struct Buffer {
    std::byte* memory;
    std::size_t bytes;
  };
  std::vector<Transfer*> free_transfers_;
  std::vector<Buffer> free_buffers_;
  std::uint64_t last_number_ = 0;  // of a transfer's use
};

}  // namespace ropewalk::messages
