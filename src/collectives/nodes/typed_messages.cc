#include "collectives/nodes/typed_messages.hpp"

#include <cstring>

namespace ropewalk::collectives::nodes {
namespace {

// What one rank sends to another goes in one message up to here: two copies take less time than a
// second message, an estimate as that of nodes.alltoall_together_block_bytes.
constexpr std::size_t short_bytes = std::size_t{32} << 10;

// Data that are packed lie on lines of the cache of their own.
constexpr std::size_t in_lines(std::size_t bytes) {
  constexpr std::size_t line = node::Slot::line_bytes;
  return (bytes + line - 1) / line * line;
}

}  // namespace

TypedMessages::TypedMessages(Nodes& nodes, const Header& header, std::size_t depth,
                             bool overwritten)
    : nodes_(nodes), header_(header), overwritten_(overwritten), traffic_(nodes, header, depth) {}

// Both ranks of a pair know how many bytes go between them, and so in how many messages.
void TypedMessages::make_messages(Side& side, bool straight) {
  const std::vector<Listed>& listed = side.listed;
  for (std::size_t first = 0; first < listed.size();) {
    std::size_t end = first;
    std::size_t bytes = 0;
    for (; end < listed.size() && listed[end].peer == listed[first].peer; ++end) {
      bytes += listed[end].part->bytes();
    }
    if (bytes <= short_bytes) {
      side.messages.push_back({first, end, bytes, true, nullptr});
    } else {
      for (std::size_t at = first; at < end; ++at) {
        const TypedPart& part = *listed[at].part;
        side.messages.push_back(
            {at, at + 1, part.bytes(), false, straight ? part.as_run() : nullptr});
      }
    }
    first = end;
  }
}

void TypedMessages::begin() {
  make_messages(sends_, !overwritten_);
  make_messages(receives_, true);
  std::size_t total = 0;
  for (const Side* side : {&sends_, &receives_}) {
    for (const Message& message : side->messages) total += in_lines(message.packed_bytes());
  }
  std::byte* memory = total > 0 ? nodes_.engine().scratch().take(total) : nullptr;
  for (Side* side : {&sends_, &receives_}) {
    for (Message& message : side->messages) {
      message.packed = memory;
      memory += in_lines(message.packed_bytes());
      const int peer = side->listed[message.first].peer;
      const bool sent = side == &sends_;
      if (message.with_header) {
        sent ? traffic_.send_whole(peer, message.packed_bytes())
             : traffic_.receive_whole(peer, message.packed_bytes());
      } else {
        sent ? traffic_.send(peer, message.bytes) : traffic_.receive(peer, message.bytes);
      }
    }
  }
  for (const Message& message : sends_.messages) {
    if (overwritten_) pack(message);
  }
  advance();
}

void TypedMessages::pack(const Message& message) const {
  std::byte* to = message.packed;
  if (message.with_header) {
    const Header header = header_of(message);
    std::memcpy(to, &header, sizeof header);
    to += sizeof header;
  }
  for (std::size_t at = message.first; at < message.end; ++at) {
    const TypedPart& part = *sends_.listed[at].part;
    part.pack(to);
    to += part.bytes();
  }
}

const void* TypedMessages::source(std::size_t number, std::size_t /*slot*/) {
  const Message& message = sends_.messages[number];
  if (message.run != nullptr) return message.run;
  if (!overwritten_) pack(message);
  return message.packed;
}

void* TypedMessages::sink(std::size_t number, std::size_t /*slot*/) {
  const Message& message = receives_.messages[number];
  return message.run != nullptr ? const_cast<std::byte*>(message.run) : message.packed;
}

void TypedMessages::received(std::size_t number, std::size_t /*slot*/) {
  const Message& message = receives_.messages[number];
  if (message.run != nullptr) return;
  const std::byte* from = message.packed;
  if (message.with_header) {
    Header header;
    std::memcpy(&header, from, sizeof header);
    check_header(header_of(message), header, receives_.listed[message.first].peer);
    from += sizeof header;
  }
  for (std::size_t at = message.first; at < message.end; ++at) {
    const TypedPart& part = *receives_.listed[at].part;
    part.unpack(from);
    from += part.bytes();
  }
}

}  // namespace ropewalk::collectives::nodes
