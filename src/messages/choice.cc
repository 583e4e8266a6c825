#include "messages/choice.hpp"

namespace ropewalk::messages {
namespace {

bool is_reached(channel::Reference buffer) noexcept { return !buffer.is_none(); }

Way fastest(const MessageBuffers& buffers, const tuning::ChannelLimits& limits) noexcept {
  const bool by_receiver = buffers.source.is_visible();
  const bool by_sender = buffers.destination.is_visible();
  if (by_receiver && by_sender && buffers.bytes >= limits.both_bytes) return Way::both;
  if (by_receiver) return Way::receiver;
  if (by_sender) return Way::sender;
  const bool by_kernel = is_reached(buffers.source) && is_reached(buffers.destination);
  if (!by_kernel || buffers.bytes < limits.kernel_bytes) return Way::pipeline;
  // Of one piece, only one of the two could copy anything.
  return buffers.bytes > limits.piece_bytes ? Way::both : Way::receiver;
}

}  // namespace

Way choose(const MessageBuffers& buffers, const tuning::ChannelLimits& limits,
           Mechanism force) noexcept {
  const bool by_receiver = is_reached(buffers.source);
  const bool by_sender = is_reached(buffers.destination);
  if (!by_receiver && !by_sender) return Way::pipeline;
  switch (force) {
    case Mechanism::pipeline:
      return Way::pipeline;
    case Mechanism::receiver:
      return by_receiver ? Way::receiver : Way::sender;
    case Mechanism::sender:
      return by_sender ? Way::sender : Way::receiver;
    case Mechanism::both:
    case Mechanism::threaded:
      if (by_receiver && by_sender) return Way::both;
      return by_receiver ? Way::receiver : Way::sender;
    default:
      return fastest(buffers, limits);
  }
}

kernels::Stores stores_for(std::size_t bytes, const tuning::ChannelLimits& limits) noexcept {
  return bytes >= limits.streaming_bytes ? kernels::Stores::streaming : kernels::Stores::temporal;
}

Mechanism mechanism_of(Way way) noexcept {
  switch (way) {
    case Way::receiver:
      return Mechanism::receiver;
    case Way::sender:
      return Mechanism::sender;
    case Way::both:
      return Mechanism::both;
    case Way::pipeline:
      return Mechanism::pipeline;
  }
  return Mechanism::none;
}

}  // namespace ropewalk::messages
