// Which mechanism carries a message, from its size and from who reaches whose buffer. The receiver
// chooses, who knows both.
#pragma once

#include <cstddef>

#include "channel/peer_memory.hpp"
#include "kernels/kernels.hpp"
#include "messages/transfer.hpp"
#include "ropewalk/channel.hpp"
#include "tuning/limits.hpp"

namespace ropewalk::messages {

struct MessageBuffers {
  channel::Reference source;
  channel::Reference destination;
  std::size_t bytes = 0;
};

// `force` is the mechanism that was asked for, none for the fastest.
Way choose(const MessageBuffers&, const tuning::ChannelLimits&, Mechanism force) noexcept;

// Long messages are stored past the caches.
kernels::Stores stores_for(std::size_t bytes, const tuning::ChannelLimits&) noexcept;

// How a transfer's bytes are counted in the answer to the user.
Mechanism mechanism_of(Way) noexcept;

}  // namespace ropewalk::messages
