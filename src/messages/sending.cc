#include "messages/sending.hpp"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <new>

#include "kernels/kernels.hpp"
#include "messages/choice.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::messages {
namespace {

// Returns false where the kernel refuses. Several threads call it at once.
bool copy(NearRanks& near, const MessageOperation& send, Pieces claimed,
          kernels::Stores stores) noexcept {
  const MessageProgress& progress = send.progress;
  const std::size_t begin = claimed.first * progress.piece_bytes;
  const std::size_t length = std::min(send.bytes - begin, claimed.count * progress.piece_bytes);
  if (progress.mapped != nullptr) {
    kernels::copy(progress.mapped + begin, send.data + begin, length, stores);
    return true;
  }
  return near.memory().write(near.place_of(send.peer), progress.there + begin, send.data + begin,
                             length, stores);
}

void complete_send(MessageOperation& operation) {
  operation.status = {operation.peer, operation.tag, operation.bytes};
  operation.complete = true;
}

}  // namespace

Sending::Sending(NearRanks& near, const tuning::ChannelLimits& limits, DeviceBuffers& devices,
                 Copiers copiers)
    : near_(near), limits_(limits), devices_(devices), copiers_(copiers) {
  peers_.reserve(static_cast<std::size_t>(near.size()));
  for (int place = 0; place < near.size(); ++place) {
    peers_.push_back({Outbox(near.own_line(place), near.peer_line(place)), {}});
  }
}

Sending::~Sending() {
  for (const Peer& peer : peers_) near_.keep(peer.outbox.ring());
  for (Transfer* each : free_transfers_) near_.keep(each);
  for (const Buffer& each : free_buffers_) near_.keep(each.memory);
  // After an error: receivers may still look at them.
  offered_.advance_all([&](const MessageOperation& operation) {
    near_.keep(operation.progress.transfer);
    near_.keep(operation.progress.buffer);
    return true;
  });
}

bool Sending::put(Peer& peer, const void* data, std::size_t bytes, int tag) {
  if (bytes <= Cell::payload_bytes) {
    if (!peer.outbox.has_room(0)) return false;
    peer.outbox.put_in_cell(data, bytes, tag);
  } else {
    if (!peer.outbox.has_room(bytes)) return false;
    peer.outbox.put_in_slot(data, bytes, tag);
  }
  near_.team().waits().wake_sleepers();
  return true;
}

void Sending::start(MessageOperation& operation, int place) {
  Peer& peer = peers_[static_cast<std::size_t>(place)];
  if (peer.waiting.empty() && try_to_put(peer, operation)) return;
  peer.waiting.add(operation);
  ++waiting_;
}

// Longer private buffers, too, are better copied twice than read by the kernel.
bool Sending::fits_slot(const void* data, std::size_t bytes) const {
  if (bytes <= limits_.slot_bytes) return true;
  return bytes <= limits_.private_slot_bytes && near_.memory().visible(data, bytes).is_none();
}

bool Sending::try_to_put(Peer& peer, MessageOperation& operation) {
  if (operation.device == nullptr && fits_slot(operation.data, operation.bytes)) {
    if (!put(peer, operation.data, operation.bytes, operation.tag)) return false;
    complete_send(operation);
    return true;
  }
  if (!peer.outbox.has_room(0)) return false;
  Transfer& transfer = take_transfer();
  const std::uint64_t number = ++last_number_;
  // No other rank looks at it before the cell is released.
  transfer.state.store(state::of(number, state::offered), std::memory_order_relaxed);
  transfer.sent.store(0, std::memory_order_relaxed);
  transfer.received.store(0, std::memory_order_relaxed);
  transfer.failed = 0;
  operation.progress = {};
  operation.progress.transfer = &transfer;
  operation.progress.number = number;
  peer.outbox.put_offer({describe(operation, transfer), Arena::process().offset(&transfer), number},
                        operation.bytes, operation.tag);
  near_.team().waits().wake_sleepers();
  offered_.add(operation);
  return true;
}

// Says where the buffer lies.
channel::Reference Sending::describe(const MessageOperation& operation, Transfer& transfer) {
  if (operation.device == nullptr) {
    return near_.memory().reachable(operation.data, operation.bytes);
  }
  transfer.device = operation.device->describe(operation.data, operation.bytes);
  return in_device;
}

void Sending::advance() {
  if (!offered_.empty()) {
    for (Peer& peer : peers_) peer.is_filling = false;
    offered_.advance_all([&](MessageOperation& operation) { return advance(operation); });
  }
  if (waiting_ == 0) return;
  for (Peer& peer : peers_) {
    while (MessageOperation* first = peer.waiting.first()) {
      if (!try_first(peer, *first)) break;
      --waiting_;
    }
  }
}

// An operation is in one list at most: in that of the waiting again, where it cannot be sent yet.
bool Sending::try_first(Peer& peer, MessageOperation& first) {
  peer.waiting.remove(first);
  bool sent = false;
  try {
    sent = try_to_put(peer, first);
  } catch (...) {  // the arena is full
    peer.waiting.add_first(first);
    throw;
  }
  if (!sent) peer.waiting.add_first(first);
  return sent;
}

bool Sending::advance(MessageOperation& operation) {
  MessageProgress& progress = operation.progress;
  // Pairs with the releases of the receiver: its answer, and that it is done with our memory.
  std::uint64_t now = progress.transfer->state.load(std::memory_order_acquire);
  if (state::what(now) == state::offered) return false;
  if (state::what(now) == state::answered) {
    if (!progress.answered) read_answer(operation);
    if (progress.way == Way::pipeline) fill_in_turn(operation);
    if (progress.way == Way::both || progress.way == Way::sender) copy_claimed(operation);
    now = progress.transfer->state.load(std::memory_order_acquire);
    if (state::what(now) == state::answered) return false;
  }
  end(operation, state::what(now));
  return true;
}

void Sending::read_answer(MessageOperation& operation) {
  MessageProgress& progress = operation.progress;
  const Transfer& transfer = *progress.transfer;
  progress.answered = true;
  progress.way = transfer.way;
  progress.pieces = transfer.pieces;
  progress.piece_bytes = transfer.piece_bytes;
  progress.there = transfer.destination;
  progress.bytes = operation.bytes;
  const int place = near_.place_of(operation.peer);
  if (progress.there.is_visible()) {
    progress.mapped = near_.memory().resolve(place, progress.there, operation.bytes);
  }
}

void Sending::copy_claimed(MessageOperation& operation) {
  MessageProgress& progress = operation.progress;
  Transfer& transfer = *progress.transfer;
  if (copiers_.share(operation.bytes)) return copy_with_all(operation);
  const kernels::Stores stores = stores_for(operation.bytes, limits_);
  const std::uint32_t at_once = copiers_.pieces_at_once(operation.bytes, progress.pieces);
  while (true) {
    const Pieces claimed = claim(transfer.unclaimed, End::back, at_once);
    if (claimed.count == 0) return;
    if (!copy(near_, operation, claimed, stores)) {
      transfer.failed = static_cast<std::uint32_t>(Failure::of_kernel);
    }
    tell_copied(operation, claimed.count);
  }
}

// Copies until nothing is left to claim, with all threads of this rank.
void Sending::copy_with_all(MessageOperation& operation) {
  MessageProgress& progress = operation.progress;
  Transfer& transfer = *progress.transfer;
  const kernels::Stores stores = stores_for(operation.bytes, limits_);
  std::atomic<bool> failed{false};
  const std::uint32_t copied = copiers_.threads->copy(
      transfer.unclaimed, End::back, copiers_.pieces_at_once(operation.bytes, progress.pieces),
      [&](Pieces claimed) {
        if (!copy(near_, operation, claimed, stores)) failed.store(true, std::memory_order_relaxed);
      });
  if (failed.load(std::memory_order_relaxed)) {
    transfer.failed = static_cast<std::uint32_t>(Failure::of_kernel);
  }
  if (copied != 0) tell_copied(operation, copied);
}

void Sending::tell_copied(MessageOperation& operation, std::uint32_t pieces) noexcept {
  MessageProgress& progress = operation.progress;
  progress.done += pieces;
  // Pairs with the acquire in Receiving::advance() there.
  progress.transfer->sent.store(progress.done, std::memory_order_release);
  near_.team().waits().wake_sleepers();
}

// Only one pipeline to a peer runs at a time, so that the buffers stay in the second cache.
void Sending::fill_in_turn(MessageOperation& operation) {
  Peer& peer = peers_[static_cast<std::size_t>(near_.place_of(operation.peer))];
  if (!peer.is_filling) peer.is_filling = fill_pipeline(operation);
}

// Whether there is more to fill, once the receiver has made room.
bool Sending::fill_pipeline(MessageOperation& operation) {
  MessageProgress& progress = operation.progress;
  Transfer& transfer = *progress.transfer;
  if (progress.buffer == nullptr) {
    progress.buffer = take_buffer(pipeline_depth * progress.piece_bytes);
    transfer.buffer = Arena::process().offset(progress.buffer);
    if (operation.device != nullptr) {
      devices_.pin(*operation.device, progress.buffer, pipeline_depth * progress.piece_bytes);
    }
  }
  if (operation.device != nullptr) return fill_from_device(operation, near_);
  while (true) {
    // Pairs with the release in Receiving::empty_pipeline() there: that part is free again.
    const std::uint64_t received = transfer.received.load(std::memory_order_acquire);
    if (progress.done - received >= pipeline_depth) return true;
    if (claim(transfer.unclaimed, End::front, 1).count == 0) return false;
    const std::size_t begin = progress.done * progress.piece_bytes;
    std::byte* part = progress.buffer + progress.done % pipeline_depth * progress.piece_bytes;
    kernels::copy(part, operation.data + begin,
                  std::min(operation.bytes - begin, progress.piece_bytes),
                  kernels::Stores::temporal);
    ++progress.done;
    transfer.sent.store(progress.done, std::memory_order_release);
    near_.team().waits().wake_sleepers();
  }
}

// What the receiver means that has refused a message.
Error Sending::refusal(const MessageOperation& operation) const {
  const Transfer& transfer = *operation.progress.transfer;
  if (transfer.failed == static_cast<std::uint32_t>(Failure::of_device)) {
    return told_failure("send", operation.peer, transfer);
  }
  near_.explain_refusal(near_.place_of(operation.peer));
  return {ErrorCode::system, "send: the kernel does not copy between this rank and rank " +
                                 std::to_string(operation.peer) +
                                 "; send from memory of an Arena, or receive into it"};
}

void Sending::end(MessageOperation& operation, std::uint64_t state) {
  MessageProgress& progress = operation.progress;
  if (state == state::refused && !operation.error) operation.error.emplace(refusal(operation));
  free_transfers_.push_back(progress.transfer);
  if (progress.buffer != nullptr) {
    free_buffers_.push_back({progress.buffer, pipeline_depth * progress.piece_bytes});
  }
  progress = {};
  complete_send(operation);
}

bool Sending::withdraw(MessageOperation& operation, int place) noexcept {
  MessageProgress& progress = operation.progress;
  if (progress.transfer == nullptr) {
    peers_[static_cast<std::size_t>(place)].waiting.remove(operation);
    --waiting_;
    return true;
  }
  std::uint64_t expected = state::of(progress.number, state::offered);
  // From here on the receiver does not look at the buffer.
  if (!progress.transfer->state.compare_exchange_strong(
          expected, state::of(progress.number, state::withdrawn), std::memory_order_acq_rel)) {
    return false;
  }
  offered_.remove(operation);
  near_.keep(progress.transfer);  // the receiver will still read that it was withdrawn
  progress = {};
  return true;
}

Transfer& Sending::take_transfer() {
  if (!free_transfers_.empty()) {
    Transfer* transfer = free_transfers_.back();
    free_transfers_.pop_back();
    return *transfer;
  }
  void* memory = Arena::process().allocate(sizeof(Transfer), node::flag_stride);
  std::memset(memory, 0, sizeof(Transfer));
  return *new (memory) Transfer;
}

// Takes a buffer that is long enough, and gives the others back to the arena.
std::byte* Sending::take_buffer(std::size_t bytes) {
  const auto found = std::ranges::find_if(
      free_buffers_, [&](const Buffer& buffer) { return buffer.bytes >= bytes; });
  if (found == free_buffers_.end()) {
    return static_cast<std::byte*>(Arena::process().allocate(bytes, 4096));
  }
  std::byte* memory = found->memory;
  free_buffers_.erase(found);
  return memory;
}

}  // namespace ropewalk::messages
