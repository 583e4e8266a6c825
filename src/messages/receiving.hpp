// The messages that this rank receives from ranks of its node, itself included.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "messages/inbox.hpp"
#include "messages/near_ranks.hpp"
#include "messages/operation.hpp"
#include "messages/posted.hpp"
#include "messages/unexpected.hpp"
#include "tuning/limits.hpp"

namespace ropewalk::messages {

class Receiving {
 public:
  Receiving(NearRanks& near, Posted& posted, int ranks, const tuning::ChannelLimits& limits,
            Mechanism force);

  // Looks for a message of a near rank without waiting, for a receive before which none is
  // waiting. Takes what needs no transfer; false where there is none of that kind.
  bool receive_now(std::byte* data, std::size_t bytes, int place, int tag, MessageStatus& status) {
    if (!unexpected_.empty() || !posted_.empty()) return false;
    Inbox& inbox = inboxes_[static_cast<std::size_t>(place)];
    const Cell* cell = inbox.head();
    if (cell == nullptr || cell->carriage == Carriage::offer) return false;
    if ((tag != any_tag && cell->tag != tag) || cell->bytes > bytes) return false;
    copy_out(inbox, *cell, data);
    status = {near_.rank_at(place), cell->tag, cell->bytes};
    note(cell->carriage);
    inbox.pop();
    return true;
  }
  // A receive that is to be posted: true where a message that had come before is for it, which it
  // has taken.
  bool take_unexpected(Operation&);
  // A message of this rank to itself.
  void send_to_self(const Operation& send);
  // Moves everything on.
  void advance();
  // A message whose other rank is gone.
  void forget(Operation& operation) noexcept { incoming_.remove(operation); }
  bool idle() const noexcept { return incoming_.empty(); }
  // The first message that a receive would take.
  std::optional<MessageStatus> probe(int source, int tag);
  Mechanism last() const noexcept { return last_; }

 private:
  void copy_out(const Inbox& inbox, const Cell& cell, std::byte* data) const noexcept;
  void note(Carriage carriage) noexcept {
    last_ = carriage == Carriage::cell ? Mechanism::inlined : Mechanism::slots;
  }
  void empty_inbox(int place, bool all);
  bool deliver(const Cell&, int place);
  void keep(const Cell&, int place);
  // The transfer of an offered message; false where its sender has withdrawn it.
  bool answer(Operation&, int source, int tag, std::size_t bytes, const Offer&);
  bool say(const Operation&, std::uint64_t what) noexcept;
  void begin_copies(Operation&, int place, channel::Reference source);
  bool advance(Operation&);
  void copy_claimed(Operation&);
  void empty_pipeline(Operation&);
  void complete(Operation&, std::uint64_t how);

  NearRanks& near_;
  Posted& posted_;
  const tuning::ChannelLimits& limits_;
  Mechanism force_;
  Mechanism last_ = Mechanism::none;
  std::vector<Inbox> inboxes_;  // by place
  Unexpected unexpected_;
  OperationList incoming_;  // transfers that are answered
};

// What a receive says of a message that is longer than its buffer.
Error too_long(const MessageStatus& message, std::size_t bytes);

}  // namespace ropewalk::messages
