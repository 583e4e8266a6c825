#include "transport/part.hpp"

#include <algorithm>
#include <utility>

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

void cut_into_pieces(std::vector<Part>& parts, std::size_t piece_bytes) {
  if (piece_bytes == 0) return;
  std::vector<Part> pieces;
  pieces.reserve(parts.size());
  for (const Part& part : parts) {
    std::size_t begin = 0;
    do {  // a part without bytes is a message all the same
      Part piece = part;
      piece.data += begin;
      piece.bytes = std::min(piece_bytes, part.bytes - begin);
      begin += piece.bytes;
      pieces.push_back(piece);
    } while (begin < part.bytes);
  }
  parts = std::move(pieces);
}

std::vector<Part> parts_of(std::span<const Message> messages, int lanes, std::size_t split_bytes,
                           std::size_t piece_bytes) {
  std::vector<Part> parts;
  parts.reserve(messages.size());
  for (const Message& message : messages) append_parts(message, lanes, split_bytes, parts);
  cut_into_pieces(parts, piece_bytes);
  std::stable_sort(parts.begin(), parts.end(),
                   [](const Part& a, const Part& b) { return a.step < b.step; });
  return parts;
}

}  // namespace ropewalk::transport
