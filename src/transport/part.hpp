// Parts: how the messages of a plan are dealt to lanes. That is a function of the message, the
// number of lanes and split_bytes alone, which both sides know, so sender and receiver cut a
// message in the same way.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "mpi/attributes.hpp"
#include "ropewalk/endpoint.hpp"

namespace ropewalk::transport {

// Tags of messages end at max_message_tag: what MPI promises above is kept for tags of our own.
inline constexpr int max_message_tag = mpi::least_tag_bound / 8;
inline constexpr int control_tag = mpi::least_tag_bound;
inline constexpr int notice_tag = control_tag - 1;  // of a rank that an exception has taken away
inline constexpr int max_tag = notice_tag - 1;

// A cache line: two lanes never write to one line of a receive buffer.
inline constexpr std::size_t part_alignment = 64;

// What one MPI call sends or receives.
struct Part {
  bool receive;
  std::byte* data;
  std::size_t bytes;
  int peer;
  int tag;
  int lane;
  int step;
};

// Appends the parts of one message to `parts`. The cost is at most `lanes` parts.
void append_parts(const Message& message, int lanes, std::size_t split_bytes,
                  std::vector<Part>& parts);

// Cuts parts above `piece_bytes` into pieces of that size (0: leaves them whole), in their order.
// UCX over TCP sends a message by one write, whose acknowledgement waits until the other side has
// finished its own write: above a few MB a link then carries one direction after the other.
void cut_into_pieces(std::vector<Part>& parts, std::size_t piece_bytes);

// Returns all parts of a plan, by step. Messages of one peer, tag and lane keep the order they were
// given in: it is what MPI matches them by.
std::vector<Part> parts_of(std::span<const Message> messages, int lanes, std::size_t split_bytes,
                           std::size_t piece_bytes = 0);

}  // namespace ropewalk::transport
