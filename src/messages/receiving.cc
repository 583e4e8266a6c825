#include "messages/receiving.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <string>
#include <utility>

#include "kernels/kernels.hpp"
#include "messages/choice.hpp"
#include "os/clock.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::messages {
namespace {

// Cells hold too little for a kernel to pay.
void copy_bytes(std::byte* to, const std::byte* from, std::size_t bytes) noexcept {
  if (bytes == 0) return;
  if (bytes <= Cell::payload_bytes) {
    std::memcpy(to, from, bytes);
  } else {
    kernels::copy(to, from, bytes, kernels::Stores::temporal);
  }
}

// Puts a message that came whole, into memory of the host or of a device.
void give(MessageOperation& receive, const std::byte* from, std::size_t bytes) noexcept {
  if (receive.device == nullptr) [[likely]] {
    copy_bytes(receive.data, from, bytes);
  } else {
    put_into_device(receive, from, bytes);
  }
}

// Counts the pieces that are in their place.
std::uint64_t copied_by_sender(const MessageProgress& progress) noexcept {
  if (progress.way == Way::pipeline) return progress.emptied;
  // Pairs with the release in Sending::copy_claimed() there.
  return progress.transfer->sent.load(std::memory_order_acquire);
}

// Whether a message that was kept can still be received: its sender may have withdrawn its offer.
bool is_there(const NearRanks& near, const UnexpectedMessage& message, int source) noexcept {
  if (message.carriage != Carriage::offer) return true;
  const auto& transfer =
      *reinterpret_cast<const Transfer*>(near.base(near.place_of(source)) + message.offer.transfer);
  // Relaxed: nothing that the sender has written is read by it.
  return transfer.state.load(std::memory_order_relaxed) ==
         state::of(message.offer.number, state::offered);
}

// What has failed at the sender, or has been refused by the kernel.
Error refusal(const NearRanks& near, const MessageOperation& receive) {
  const Transfer& transfer = *receive.progress.transfer;
  const int source = receive.status.source;
  if (transfer.failed == static_cast<std::uint32_t>(Failure::of_device)) {
    return told_failure("receive", source, transfer);
  }
  near.explain_refusal(near.place_of(source));
  return {ErrorCode::system, "receive: the kernel does not copy between this rank and rank " +
                                 std::to_string(source) + "; receive into memory of an Arena"};
}

// A sender that looks fills a piece in 1 to 3 us, from memory that no cache holds. A sender that
// has shown no piece in this time is taken to be away. The kernel's copy of 128 KiB takes as long.
constexpr std::int64_t starved_ns = 50'000;
// What the receiver then copies at a time: 256 KiB take the kernel 25 us. The sender may be back.
constexpr std::uint32_t pieces_when_starved = 16;

// The receiver reads a message of one of these sizes in one call, where the kernel copies: a call
// takes 0.4 us, in which the kernel copies 6 KiB on a Xeon. Up to the first, sharing it with the
// sender takes longer, flags included; up to the second that is so where other messages wait.
constexpr std::size_t whole_bytes = std::size_t{16} << 10;
constexpr std::size_t whole_of_several_bytes = std::size_t{64} << 10;

// Returns false where the kernel refuses. Several threads call it at once.
bool copy(NearRanks& near, const MessageOperation& receive, Pieces claimed,
          kernels::Stores stores) noexcept {
  const MessageProgress& progress = receive.progress;
  const std::size_t begin = claimed.first * progress.piece_bytes;
  const std::size_t length = std::min(progress.bytes - begin, claimed.count * progress.piece_bytes);
  if (progress.mapped != nullptr) {
    kernels::copy(receive.data + begin, progress.mapped + begin, length, stores);
    return true;
  }
  return near.memory().read(receive.data + begin, near.place_of(receive.status.source),
                            progress.there + begin, length, stores);
}

// Describes this rank's buffer. The kernel is asked only where a sender is to write by it.
channel::Reference destination(NearRanks& near, const MessageOperation& receive, Mechanism force,
                               std::size_t kernel_bytes) {
  const std::size_t bytes = receive.progress.bytes;
  const bool asked = force == Mechanism::sender || force == Mechanism::both ||
                     force == Mechanism::threaded ||
                     (force == Mechanism::none && bytes >= kernel_bytes);
  return asked ? near.memory().reachable(receive.data, bytes)
               : near.memory().visible(receive.data, bytes);
}

// A short message that both have the kernel copy is two pieces, so two calls, of which the receiver
// takes the first. The sender begins later, when it has seen the answer: its piece is the shorter.
std::size_t piece_bytes(const MessageProgress& progress, const tuning::ChannelLimits& limits,
                        bool two_copy) noexcept {
  if (progress.way == Way::pipeline) return limits.pipeline_piece_bytes;
  const bool by_kernel = progress.way == Way::both && progress.mapped == nullptr;
  if (!by_kernel || !two_copy || progress.bytes > whole_of_several_bytes) {
    return limits.piece_bytes;
  }
  constexpr std::size_t line = 64;
  return (progress.bytes * 5 / 8 + line - 1) / line * line;
}

}  // namespace

void copy_out(const Inbox& inbox, const Cell& cell, std::byte* data) noexcept {
  copy_bytes(data, inbox.bytes_of(cell), cell.bytes);
}

Error too_long(const MessageStatus& message, std::size_t bytes) {
  return {ErrorCode::argument, "bytes: a message of " + std::to_string(message.bytes) +
                                   " bytes from rank " + std::to_string(message.source) +
                                   " with tag " + std::to_string(message.tag) +
                                   " was dropped, the buffer has " + std::to_string(bytes) +
                                   "; pass a buffer that is long enough, or ask probe() first"};
}

Receiving::Receiving(NearRanks& near, Posted& posted, int ranks,
                     const tuning::ChannelLimits& limits, Mechanism force, DeviceBuffers& devices,
                     Copiers copiers)
    : near_(near),
      posted_(posted),
      limits_(limits),
      force_(force),
      devices_(devices),
      copiers_(copiers),
      unexpected_(ranks) {
  quiet_since_ns_.resize(static_cast<std::size_t>(near.size()));
  inboxes_.reserve(static_cast<std::size_t>(near.size()));
  for (int place = 0; place < near.size(); ++place) {
    inboxes_.emplace_back(near.own_line(place), near.peer_line(place), near.base(place));
  }
}

// ---- matching

void Receiving::advance() {
  incoming_.advance_all([&](MessageOperation& operation) { return advance(operation); });
  // Its senders would write the lines of cells that are looked at too often more slowly.
  const std::size_t longest_slot = std::max(limits_.slot_bytes, limits_.private_slot_bytes);
  const bool looks_at_slots = ++advances_ % advances_per_look_at_slots == 0;
  for (int place = 0; place < near_.size(); ++place) {
    if (place == near_.place()) continue;
    // Messages that nobody waits for are taken before they keep their sender from others.
    const bool wanted = posted_.wants(near_.rank_at(place));
    Inbox& inbox = inboxes_[static_cast<std::size_t>(place)];
    if (wanted || inbox.is_half_full() || (looks_at_slots && inbox.slots_fill(longest_slot))) {
      empty_inbox(place, !wanted);
    }
  }
}

// Takes messages while there are any, and while receives want them unless `all` is set.
void Receiving::empty_inbox(int place, bool all) {
  Inbox& inbox = inboxes_[static_cast<std::size_t>(place)];
  while (all || posted_.wants(near_.rank_at(place))) {
    const Cell* cell = inbox.head();
    if (cell == nullptr) return;
    if (!deliver(*cell, place)) keep(*cell, place);
    inbox.pop();
  }
}

// Gives the message to the first receive that it matches. Returns true where that is done, or where
// its sender has withdrawn it.
bool Receiving::deliver(const Cell& cell, int place) {
  const int source = near_.rank_at(place);
  const int tag = cell.tag;
  const std::size_t bytes = cell.bytes;
  MessageOperation* receive = posted_.match(source, tag);
  if (receive == nullptr) return false;
  if (cell.carriage == Carriage::offer) {
    Offer offer{};
    std::memcpy(&offer, cell.payload, sizeof offer);
    answer(*receive, source, tag, bytes, offer);
    return true;
  }
  posted_.remove(*receive);
  receive->status = {source, tag, bytes};
  if (bytes > receive->bytes) {
    receive->error.emplace(too_long(receive->status, receive->bytes));
  } else {
    give(*receive, inboxes_[static_cast<std::size_t>(place)].bytes_of(cell), bytes);
  }
  note(cell.carriage);
  receive->complete = true;
  return true;
}

void Receiving::keep(const Cell& cell, int place) {
  UnexpectedMessage message{cell.tag, cell.bytes, cell.carriage, nullptr, {}};
  if (message.carriage == Carriage::offer) {
    std::memcpy(&message.offer, cell.payload, sizeof message.offer);
  } else {
    message.data = std::make_unique_for_overwrite<std::byte[]>(message.bytes);
    copy_out(inboxes_[static_cast<std::size_t>(place)], cell, message.data.get());
  }
  unexpected_.add(near_.rank_at(place), std::move(message));
}

bool Receiving::take_unexpected(MessageOperation& receive) {
  while (const auto found = unexpected_.find(receive.peer, receive.tag)) {
    UnexpectedMessage message = unexpected_.take(*found);
    receive.status = {found->source, message.tag, message.bytes};
    if (message.carriage == Carriage::offer) {
      try {
        if (answer(receive, found->source, message.tag, message.bytes, message.offer)) return true;
      } catch (...) {  // where its sender was not answered, it waits for the next receive again
        if (!receive.listed && !receive.complete) unexpected_.put_back(*found, std::move(message));
        throw;
      }
      continue;  // it was withdrawn
    }
    if (message.bytes > receive.bytes) {
      receive.error.emplace(too_long(receive.status, receive.bytes));
    } else {
      give(receive, message.data.get(), message.bytes);
    }
    note(message.carriage);
    receive.complete = true;
    return true;
  }
  return false;
}

void Receiving::send_to_self(const MessageOperation& send) {
  const int self = near_.rank_at(near_.place());
  MessageOperation* receive = posted_.match(self, send.tag);
  if (receive == nullptr) {
    UnexpectedMessage message{send.tag, send.bytes, Carriage::slot, nullptr, {}};
    message.data = std::make_unique_for_overwrite<std::byte[]>(message.bytes);
    copy_bytes(message.data.get(), send.data, send.bytes);
    return unexpected_.add(self, std::move(message));
  }
  posted_.remove(*receive);
  receive->status = {self, send.tag, send.bytes};
  if (send.bytes > receive->bytes) {
    receive->error.emplace(too_long(receive->status, receive->bytes));
  } else {
    give(*receive, send.data, send.bytes);
  }
  last_ = Mechanism::receiver;
  receive->complete = true;
}

std::optional<MessageStatus> Receiving::probe(int source, int tag) {
  for (int place = 0; place < near_.size(); ++place) {
    const int rank = near_.rank_at(place);
    if (place != near_.place() && (source == any_source || source == rank)) {
      empty_inbox(place, true);
    }
  }
  while (const auto found = unexpected_.find(source, tag)) {
    const UnexpectedMessage& message = unexpected_.at(*found);
    if (is_there(near_, message, found->source)) {
      return MessageStatus{found->source, message.tag, message.bytes};
    }
    unexpected_.take(*found);
  }
  return {};
}

// ---- messages that lie in their sender's buffer

bool Receiving::answer(MessageOperation& receive, int source, int tag, std::size_t bytes,
                       const Offer& offer) {
  const int place = near_.place_of(source);
  auto& transfer = *reinterpret_cast<Transfer*>(near_.base(place) + offer.transfer);
  receive.progress = {};
  receive.progress.transfer = &transfer;
  receive.progress.number = offer.number;
  receive.progress.bytes = bytes;
  receive.status = {source, tag, bytes};
  const bool fits = bytes <= receive.bytes;
  if (fits && reads_whole(receive, place, offer.source)) {
    return read_whole(receive, place, offer.source);
  }
  if (fits) begin_copies(receive, place, offer.source);
  if (!say(receive, fits ? state::answered : state::complete)) {
    receive.progress = {};
    return false;
  }
  if (receive.posted) posted_.remove(receive);
  if (!fits) {
    receive.error.emplace(too_long(receive.status, receive.bytes));
    receive.complete = true;
  } else {
    incoming_.add(receive);  // before it may throw
    if (advance(receive)) incoming_.remove(receive);
  }
  return true;
}

bool Receiving::reads_whole(const MessageOperation& receive, int place,
                            channel::Reference source) const noexcept {
  const std::size_t bytes = receive.progress.bytes;
  if (force_ != Mechanism::none || receive.device != nullptr || bytes < limits_.kernel_bytes ||
      bytes > whole_of_several_bytes || !source.is_by_kernel()) {
    return false;
  }
  // What the sender can write by itself, or all threads of a rank can copy, is not for the kernel.
  if (!near_.memory().visible(receive.data, bytes).is_none() || copiers_.share(bytes)) return false;
  return bytes <= whole_bytes || !incoming_.empty() || !unexpected_.empty() ||
         inboxes_[static_cast<std::size_t>(place)].has_more();
}

// Reads a message at once. Of the transfer it touches only the line of the state: every other line
// would come from the sender's cache, for 0.1 us.
bool Receiving::read_whole(MessageOperation& receive, int place, channel::Reference source) {
  Transfer& transfer = *receive.progress.transfer;
  receive.progress.way = Way::receiver;
  transfer.way = Way::receiver;
  transfer.destination = channel::Reference::none();
  if (!say(receive, state::answered)) {
    receive.progress = {};
    return false;
  }
  if (receive.posted) posted_.remove(receive);
  const bool read = near_.memory().read(receive.data, place, source, receive.progress.bytes,
                                        kernels::Stores::temporal);
  if (!read) {
    receive.progress.failed = true;  // if the next throws, whoever moves it on meets that again
    incoming_.add(receive);          // before it may throw
    receive.error.emplace(refusal(near_, receive));
    incoming_.remove(receive);
  }
  complete(receive, read ? state::complete : state::refused);
  return true;
}

// Returns false where the sender has withdrawn its offer.
bool Receiving::say(const MessageOperation& receive, std::uint64_t what) noexcept {
  const MessageProgress& progress = receive.progress;
  std::uint64_t expected = state::of(progress.number, state::offered);
  // Pairs with the acquire in Sending::advance() there.
  const bool said = progress.transfer->state.compare_exchange_strong(
      expected, state::of(progress.number, what), std::memory_order_acq_rel);
  near_.team().waits().wake_sleepers();
  return said;
}

// What both need to know of the copies.
void Receiving::begin_copies(MessageOperation& receive, int place, channel::Reference source) {
  MessageProgress& progress = receive.progress;
  channel::Reference own;
  if (receive.device != nullptr || source == in_device) {
    begin_device_copies(receive, near_, place, source, force_);
    progress.piece_bytes =
        progress.way == Way::pipeline ? limits_.device_piece_bytes : progress.bytes;
  } else {
    own = destination(near_, receive, force_, limits_.kernel_bytes);
    progress.way = choose({source, own, progress.bytes}, limits_, force_);
    progress.there = source;
    if (source.is_visible()) {
      progress.mapped = near_.memory().resolve(place, source, progress.bytes);
    }
    const bool two_copy = force_ == Mechanism::none && !copiers_.share(progress.bytes);
    progress.piece_bytes = piece_bytes(progress, limits_, two_copy);
  }
  // Pieces are counted in 32 bits: those of a message of more than 16 TiB are longer.
  while (progress.bytes / progress.piece_bytes >= UINT32_MAX) progress.piece_bytes *= 2;
  progress.pieces = static_cast<std::uint32_t>((progress.bytes + progress.piece_bytes - 1) /
                                               progress.piece_bytes);
  Transfer& transfer = *progress.transfer;
  transfer.way = progress.way;
  transfer.pieces = progress.pieces;
  transfer.piece_bytes = progress.piece_bytes;
  transfer.destination = own;
  transfer.unclaimed.store(packed(0, progress.pieces), std::memory_order_relaxed);
  quiet_since_ns_[static_cast<std::size_t>(place)] = 0;  // the sender has time to see the answer
}

bool Receiving::advance(MessageOperation& receive) {
  MessageProgress& progress = receive.progress;
  if (receive.device != nullptr) {
    advance_into_device(receive, near_, near_.place_of(receive.status.source), devices_);
  } else {
    advance_on_host(receive);
  }
  if (progress.done + copied_by_sender(progress) != progress.pieces) return false;
  if (!progress.failed && progress.transfer->failed == 0) {
    complete(receive, state::complete);
    return true;
  }
  if (!receive.error) {
    receive.error.emplace(refusal(near_, receive));
  } else {  // of this rank's device
    tell_failure(*progress.transfer, *receive.error);
  }
  complete(receive, state::refused);
  return true;
}

void Receiving::advance_on_host(MessageOperation& receive) {
  const Way way = receive.progress.way;
  if (way == Way::pipeline) empty_pipeline(receive);
  if (way == Way::receiver || way == Way::both) {
    copy_with_all(receive);
  } else if (is_starved(receive)) {
    copy_claimed(receive, pieces_when_starved);
  }
}

// Whether the sender should copy and does not look: it computes, or has no core. A piece of any
// message says that it does.
bool Receiving::is_starved(MessageOperation& receive) noexcept {
  MessageProgress& progress = receive.progress;
  if (progress.way == Way::receiver || progress.way == Way::both) return false;
  if (progress.there.is_none() || force_ != Mechanism::none) return false;
  std::int64_t& since =
      quiet_since_ns_[static_cast<std::size_t>(near_.place_of(receive.status.source))];
  // Only a hint, which pairs with nothing.
  const std::uint64_t sent = progress.transfer->sent.load(std::memory_order_relaxed);
  if (sent != progress.seen_sent) {
    progress.seen_sent = sent;
    since = 0;
    return false;
  }
  const std::int64_t now = os::steady_ns();
  if (since == 0) since = now;
  return now - since > starved_ns;
}

// Copies until nothing is left to claim, with all threads of this rank where that pays.
void Receiving::copy_with_all(MessageOperation& receive) {
  MessageProgress& progress = receive.progress;
  if (!copiers_.share(progress.bytes)) {
    while (copy_claimed(receive, copiers_.pieces_at_once(progress.bytes, progress.pieces))) {
    }
    return;
  }
  const kernels::Stores stores = stores_for(progress.bytes, limits_);
  std::atomic<bool> failed{false};
  const auto copy_one = [&](Pieces claimed) {
    if (!copy(near_, receive, claimed, stores)) failed.store(true, std::memory_order_relaxed);
  };
  progress.done +=
      copiers_.threads->copy(progress.transfer->unclaimed, End::front,
                             copiers_.pieces_at_once(progress.bytes, progress.pieces), copy_one);
  if (failed.load(std::memory_order_relaxed)) progress.failed = true;
}

// Copies what it can claim at once; returns false where nothing is left. A part that the kernel
// refuses counts as copied.
bool Receiving::copy_claimed(MessageOperation& receive, std::uint32_t most) {
  MessageProgress& progress = receive.progress;
  const End from = progress.way == Way::pipeline ? End::back : End::front;
  const Pieces claimed = claim(progress.transfer->unclaimed, from, most);
  if (claimed.count == 0) return false;
  if (!copy(near_, receive, claimed, stores_for(progress.bytes, limits_))) progress.failed = true;
  progress.done += claimed.count;
  return true;
}

void Receiving::empty_pipeline(MessageOperation& receive) {
  MessageProgress& progress = receive.progress;
  Transfer& transfer = *progress.transfer;
  // Pairs with the release in Sending::fill_pipeline() there.
  while (transfer.sent.load(std::memory_order_acquire) != progress.emptied) {
    if (progress.buffer == nullptr) {
      progress.buffer = near_.base(near_.place_of(receive.status.source)) + transfer.buffer;
    }
    const std::size_t begin = progress.emptied * progress.piece_bytes;
    kernels::copy(receive.data + begin,
                  progress.buffer + progress.emptied % pipeline_depth * progress.piece_bytes,
                  std::min(progress.bytes - begin, progress.piece_bytes),
                  stores_for(progress.bytes, limits_));
    ++progress.emptied;
    transfer.received.store(progress.emptied, std::memory_order_release);
    near_.team().waits().wake_sleepers();
  }
}

void Receiving::complete(MessageOperation& receive, std::uint64_t how) {
  MessageProgress& progress = receive.progress;
  // The sender may use its buffer, and the transfer, again.
  progress.transfer->state.store(state::of(progress.number, how), std::memory_order_release);
  near_.team().waits().wake_sleepers();
  const bool by_threads = progress.way != Way::pipeline && copiers_.share(progress.bytes);
  last_ = by_threads ? Mechanism::threaded : mechanism_of(progress.way);
  progress = {};
  receive.complete = true;
}

}  // namespace ropewalk::messages
