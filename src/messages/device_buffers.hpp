// Messages whose buffer is memory of a CUDA device, at one of their ends or at both.
//
// A short one, and one to or from another node or this rank itself, is copied whole through host
// memory, and is the message of a host's buffer otherwise. A longer one is offered as such a
// message is. The receiver answers how it comes:
//   from device to device  its copy engine copies, straight from the sender's memory, where the
//                          driver opens that to its process
//   otherwise              in pieces through a buffer of the pair. The end whose memory is a
//                          device's has its copy engine move them; at the other end the rank does.
#pragma once

#include <cstddef>
#include <memory>

#include "channel/device_memory.hpp"
#include "messages/near_ranks.hpp"
#include "messages/operation.hpp"
#include "messages/transfer.hpp"
#include "ropewalk/channel.hpp"

namespace ropewalk::messages {

// What an offer says instead of a place: the source is memory of a device, which its transfer
// describes.
inline constexpr channel::Reference in_device = channel::Reference::none(1);

// The device memory of a channel.
class DeviceBuffers {
 public:
  // Looks once whether buffers of this process can be a device's.
  void look() { memory_ = channel::DeviceMemory::create(); }
  // Returns the context of a buffer of a device; null for memory of the host.
  channel::DeviceContext* context_of(const void* data, std::size_t bytes) {
    if (memory_ == nullptr) [[likely]] {
      return nullptr;
    }
    return bytes == 0 ? nullptr : memory_->context_of(data);
  }
  bool is_copying() const noexcept { return memory_ != nullptr && memory_->is_copying(); }
  void pin(channel::DeviceContext& context, void* memory, std::size_t bytes) {
    memory_->pin(context, memory, bytes);
  }

 private:
  std::unique_ptr<channel::DeviceMemory> memory_;  // null: no buffer can be
};

// ---- whole messages

// Makes the message one of host memory, which the operation keeps.
void stage(MessageOperation& send);
// Puts the bytes of a message, in host memory, into the buffer of its receive in device memory. An
// error becomes the receive's.
void put_into_device(MessageOperation& receive, const std::byte* from, std::size_t bytes) noexcept;

// ---- the sender of a message that is offered

// Moves the pieces on from the device into the buffer of the pair. Returns whether there are more.
bool fill_from_device(MessageOperation& send, NearRanks& near);

// ---- its receiver

// Chooses the way, and prepares it. `force` is what the channel was told.
void begin_device_copies(MessageOperation& receive, NearRanks& near, int place,
                         channel::Reference source, Mechanism force);
// Moves the message on, to device memory.
void advance_into_device(MessageOperation& receive, NearRanks& near, int place,
                         DeviceBuffers& buffers);

// ---- errors

// Tells the other end what has failed at this one.
void tell_failure(Transfer& transfer, const Error& error) noexcept;
// Returns what the other end, the rank `peer`, has told.
Error told_failure(const char* call, int peer, const Transfer& transfer);

}  // namespace ropewalk::messages
