// The messages that this rank receives from ranks of its node, itself included.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "messages/copy_threads.hpp"
#include "messages/device_buffers.hpp"
#include "messages/inbox.hpp"
#include "messages/near_ranks.hpp"
#include "messages/operation.hpp"
#include "messages/posted.hpp"
#include "messages/unexpected.hpp"
#include "tuning/limits.hpp"

namespace ropewalk::messages {

// Copies a message that came in its cell or its slot.
void copy_out(const Inbox& inbox, const Cell& cell, std::byte* data) noexcept;

class Receiving {
 public:
  Receiving(NearRanks& near, Posted& posted, int ranks, const tuning::ChannelLimits& limits,
            Mechanism force, DeviceBuffers& devices, Copiers copiers);

  // What a look for a message of a near rank finds.
  enum class Look : std::uint8_t { nothing, taken, other };
  // Takes the message where it is the next one, matches, and has come whole; `other` says that the
  // receive must be posted. It may be called only where nothing else is under way, for memory of
  // the host.
  Look receive_now(std::byte* data, std::size_t bytes, int place, int tag, MessageStatus& status) {
    if (!unexpected_.empty() || !posted_.empty() || !incoming_.empty()) return Look::other;
    Inbox& inbox = inboxes_[static_cast<std::size_t>(place)];
    const Cell* cell = inbox.head();
    if (cell == nullptr) return Look::nothing;
    if (cell->carriage == Carriage::offer || (tag != any_tag && cell->tag != tag) ||
        cell->bytes > bytes) {
      return Look::other;
    }
    copy_out(inbox, *cell, data);
    status = {near_.rank_at(place), cell->tag, cell->bytes};
    note(cell->carriage);
    inbox.pop();
    return Look::taken;
  }
  // A receive that is to be posted: true where a message that had come before is for it, which it
  // has taken.
  bool take_unexpected(MessageOperation&);
  // Sends a message of this rank to itself.
  void send_to_self(const MessageOperation& send);
  // Moves everything on.
  void advance();
  // Forgets a message whose other rank is gone.
  void forget(MessageOperation& operation) noexcept { incoming_.remove(operation); }
  // Returns the first message that a receive would take.
  std::optional<MessageStatus> probe(int source, int tag);
  bool idle() const noexcept { return incoming_.empty(); }
  Mechanism last() const noexcept { return last_; }

 private:
  void note(Carriage carriage) noexcept {
    last_ = carriage == Carriage::cell ? Mechanism::inlined : Mechanism::slots;
  }
  void empty_inbox(int place, bool all);
  bool deliver(const Cell&, int place);
  void keep(const Cell&, int place);
  // Answers an offer, and begins its transfer; returns false where its sender has withdrawn it.
  bool answer(MessageOperation&, int source, int tag, std::size_t bytes, const Offer&);
  bool say(const MessageOperation&, std::uint64_t what) noexcept;
  void begin_copies(MessageOperation&, int place, channel::Reference source);
  bool reads_whole(const MessageOperation&, int place, channel::Reference source) const noexcept;
  bool read_whole(MessageOperation&, int place, channel::Reference source);
  bool advance(MessageOperation&);
  void advance_on_host(MessageOperation&);
  bool is_starved(MessageOperation&) noexcept;
  void copy_with_all(MessageOperation&);
  bool copy_claimed(MessageOperation&, std::uint32_t most);
  void empty_pipeline(MessageOperation&);
  void complete(MessageOperation&, std::uint64_t how);

  NearRanks& near_;
  Posted& posted_;
  const tuning::ChannelLimits& limits_;
  Mechanism force_;
  DeviceBuffers& devices_;
  Copiers copiers_;
  Mechanism last_ = Mechanism::none;
  std::vector<Inbox> inboxes_;  // by place
  // By place, since when that rank has copied no piece; 0: since just now.
  std::vector<std::int64_t> quiet_since_ns_;
  Unexpected unexpected_;
  static constexpr unsigned advances_per_look_at_slots = 16;
  unsigned advances_ = 0;
  OperationList incoming_;  // transfers that are answered
};

// What a receive says of a message that is longer than its buffer.
Error too_long(const MessageStatus& message, std::size_t bytes);

}  // namespace ropewalk::messages
