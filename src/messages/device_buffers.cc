#include "messages/device_buffers.hpp"

#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <string>

namespace ropewalk::messages {
namespace {

using channel::CopyDirection;
using channel::DeviceCopies;

std::size_t length_of(const MessageProgress& progress, std::size_t piece) {
  return std::min(progress.bytes - piece * progress.piece_bytes, progress.piece_bytes);
}

std::byte* part_of(const MessageProgress& progress, std::size_t piece) {
  return progress.buffer + piece % pipeline_depth * progress.piece_bytes;
}

// From here on pieces count as copied, so that both ranks come to the end of the message. Waits for
// the copies under way.
void fail(MessageOperation& operation, const Error& error) noexcept {
  operation.progress.failed = true;
  operation.progress.copies.reset();
  if (!operation.error) operation.error.emplace(error);
}

template <class Body>
void or_fail(MessageOperation& operation, const Body& body) {
  if (operation.progress.failed) return;
  try {
    body();
  } catch (const Error& error) {
    fail(operation, error);
  }
}

// Returns the pieces whose copies are complete, of those that were begun.
std::uint32_t copied_of(MessageOperation& operation, std::uint32_t begun) {
  std::uint64_t copied = begun;
  or_fail(operation, [&] { copied = operation.progress.copies->completed(); });
  return operation.progress.failed ? begun : static_cast<std::uint32_t>(copied);
}

void empty_into_device(MessageOperation& receive, NearRanks& near, int place,
                       DeviceBuffers& buffers) {
  MessageProgress& progress = receive.progress;
  Transfer& transfer = *progress.transfer;
  // Pairs with the releases of the sender, which has filled these pieces.
  const std::uint64_t filled = transfer.sent.load(std::memory_order_acquire);
  if (filled != 0 && progress.buffer == nullptr) {
    progress.buffer = near.base(place) + transfer.buffer;
    const bool is_own = near.team().process_id(place) == getpid();
    if (!is_own) {
      buffers.pin(*receive.device, progress.buffer, pipeline_depth * progress.piece_bytes);
    }
  }
  while (progress.begun != filled) {
    const std::uint32_t piece = progress.begun++;
    or_fail(receive, [&] {
      progress.copies->start(receive.data + piece * progress.piece_bytes, part_of(progress, piece),
                             length_of(progress, piece));
    });
  }
  const std::uint32_t copied = copied_of(receive, progress.begun);
  if (copied == progress.emptied) return;
  progress.emptied = copied;
  // Pairs with the acquires of the sender: these parts are free again.
  transfer.received.store(copied, std::memory_order_release);
  near.team().waits().wake_sleepers();
}

// The message is one piece, which this rank's copy engine takes.
void copy_from_device(MessageOperation& receive) {
  MessageProgress& progress = receive.progress;
  if (claim(progress.transfer->unclaimed, End::front).count != 0) {
    progress.begun = 1;
    or_fail(receive,
            [&] { progress.copies->start(receive.data, progress.mapped, progress.bytes); });
  }
  progress.done = copied_of(receive, progress.begun);
}

// Where the copy engine of this rank sees the source; null: nowhere.
const std::byte* seen_source(const MessageOperation& receive, NearRanks& near, int place) {
  const channel::DeviceSource& source = receive.progress.transfer->device;
  // The driver opens no memory to the process that it belongs to, and need not.
  if (near.team().process_id(place) == getpid()) {
    return reinterpret_cast<const std::byte*>(source.address);
  }
  return source.is_exported != 0 ? receive.device->open(place, source) : nullptr;
}

}  // namespace

// ---- whole messages

void stage(MessageOperation& send) {
  send.staged = std::make_unique_for_overwrite<std::byte[]>(send.bytes);
  send.device->copy(send.staged.get(), send.data, send.bytes, CopyDirection::to_host);
  send.data = send.staged.get();
  send.device = nullptr;
}

void put_into_device(MessageOperation& receive, const std::byte* from, std::size_t bytes) noexcept {
  try {
    receive.device->copy(receive.data, from, bytes, CopyDirection::to_device);
  } catch (const Error& error) {
    receive.error.emplace(error);
  }
}

// ---- the sender

bool fill_from_device(MessageOperation& send, NearRanks& near) {
  MessageProgress& progress = send.progress;
  Transfer& transfer = *progress.transfer;
  if (progress.copies == nullptr && !progress.failed) {
    progress.copies = std::make_unique<DeviceCopies>(*send.device, CopyDirection::to_host);
  }
  // Pairs with the release of the receiver: what it has taken is free again.
  const std::uint64_t received = transfer.received.load(std::memory_order_acquire);
  while (progress.begun - received < pipeline_depth &&
         claim(transfer.unclaimed, End::front, 1).count != 0) {
    const std::uint32_t piece = progress.begun++;
    or_fail(send, [&] {
      progress.copies->start(part_of(progress, piece), send.data + piece * progress.piece_bytes,
                             length_of(progress, piece));
    });
  }
  const std::uint32_t copied = copied_of(send, progress.begun);
  if (copied != progress.done) {
    progress.done = copied;
    if (progress.failed) tell_failure(transfer, *send.error);
    // Pairs with the acquire of the receiver: the pieces are there, or their failure is.
    transfer.sent.store(copied, std::memory_order_release);
    near.team().waits().wake_sleepers();
  }
  return progress.done != progress.pieces;
}

// ---- the receiver

void begin_device_copies(MessageOperation& receive, NearRanks& near, int place,
                         channel::Reference source, Mechanism force) {
  MessageProgress& progress = receive.progress;
  progress.way = Way::pipeline;
  if (receive.device == nullptr) return;
  progress.copies = std::make_unique<DeviceCopies>(*receive.device, CopyDirection::to_device);
  if (source != in_device || force == Mechanism::pipeline) return;
  progress.mapped = const_cast<std::byte*>(seen_source(receive, near, place));
  if (progress.mapped != nullptr) progress.way = Way::receiver;
}

void advance_into_device(MessageOperation& receive, NearRanks& near, int place,
                         DeviceBuffers& buffers) {
  if (receive.progress.way == Way::pipeline) {
    empty_into_device(receive, near, place, buffers);
  } else {
    copy_from_device(receive);
  }
}

// ---- errors

void tell_failure(Transfer& transfer, const Error& error) noexcept {
  transfer.failed = static_cast<std::uint32_t>(Failure::of_device);
  const std::size_t length = std::min(std::strlen(error.what()), sizeof transfer.failure - 1);
  std::memcpy(transfer.failure, error.what(), length);
  transfer.failure[length] = '\0';
}

Error told_failure(const char* call, int peer, const Transfer& transfer) {
  return {ErrorCode::system, std::string(call) + ": the device of rank " + std::to_string(peer) +
                                 " failed: " + transfer.failure};
}

}  // namespace ropewalk::messages
