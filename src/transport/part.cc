#include "transport/part.hpp"

#include <algorithm>

namespace ropewalk::transport {
namespace {

std::size_t bytes_each(std::size_t bytes, int lanes) {
  const auto count = static_cast<std::size_t>(lanes);
  const std::size_t even = bytes / count + (bytes % count != 0 ? 1 : 0);
  return (even + part_alignment - 1) / part_alignment * part_alignment;
}

Part whole(const Message& message, int lane) {
  return {.receive = message.kind == Message::Kind::receive,
          .data = static_cast<std::byte*>(message.data),
          .bytes = message.bytes,
          .peer = message.peer,
          .tag = message.tag,
          .lane = lane,
          .step = message.step};
}

}  // namespace

void append_parts(const Message& message, int lanes, std::size_t split_bytes,
                  std::vector<Part>& parts) {
  if (message.lane >= 0) {
    parts.push_back(whole(message, message.lane));
    return;
  }
  if (lanes == 1 || message.bytes <= split_bytes) {
    parts.push_back(whole(message, message.tag % lanes));
    return;
  }
  const std::size_t each = bytes_each(message.bytes, lanes);
  std::size_t begin = 0;
  for (int lane = 0; begin < message.bytes; ++lane, begin += each) {
    Part part = whole(message, lane);
    part.data += begin;
    part.bytes = std::min(each, message.bytes - begin);
    parts.push_back(part);
  }
}

std::vector<Part> parts_of(std::span<const Message> messages, int lanes, std::size_t split_bytes) {
  std::vector<Part> parts;
  parts.reserve(messages.size());
  for (const Message& message : messages) append_parts(message, lanes, split_bytes, parts);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.step < b.step; });
  return parts;
}

}  // namespace ropewalk::transport
