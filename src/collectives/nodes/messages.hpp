// Small messages between ranks, each of which is waited for at once; the header that tells what
// call a message belongs to; and the tags of all messages.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <cstring>
#include <optional>

#include "collectives/engine.hpp"
#include "collectives/nodes/call_memory.hpp"
#include "collectives/nodes/error_notices.hpp"
#include "collectives/nodes/message_waits.hpp"
#include "mpi/mpi.hpp"

namespace ropewalk::collectives::nodes {

// The first message from one rank to another in a call: which collective is called, and with how
// many bytes, as the ranks of a node compare it in their slots.
struct Header {
  std::uint64_t call;
  std::uint64_t count;
  std::uint64_t bytes = 0;  // of the message behind it, where the two have to agree on that
};
Header header_of(Kind kind, std::uint64_t count, std::uint32_t form = 0, std::uint32_t root = 0);
// Throws when the call of another rank is not ours.
void check_header(const Header& own, const Header& other, int other_rank);

// A small message is a payload behind its header.
class SmallMessage {
 public:
  SmallMessage(const Header& header, std::size_t bytes) : bytes_(sizeof(Header) + bytes) {
    if (bytes_ > few_.size()) more_.emplace(bytes_);
    std::memcpy(data(), &header, sizeof header);
  }
  std::byte* data() { return more_ ? more_->data() : few_.data(); }
  std::byte* payload() { return data() + sizeof(Header); }
  std::size_t bytes() const { return bytes_; }
  Header header() {
    Header found;
    std::memcpy(&found, data(), sizeof found);
    return found;
  }

 private:
  std::size_t bytes_;
  std::array<std::byte, 1024> few_;  // not set: only what is used is written
  std::optional<CallMemory> more_;
};

// A range of tags for each use of the communicators between nodes. Messages of one pair of ranks
// and one tag meet in order, and every rank makes the same calls in the same order, so a tag may be
// used again within a call wherever both sides post in the same order. Calls take the tags of their
// range in turn: a rank that has refused its arguments, and calls again before the others know,
// must not send them the data of its next call for those of this one.
namespace tag {
constexpr int notice = 1;         // error notices
constexpr int small = 32;         // 32 to 63: vectors that go whole
constexpr int chunks = 0x1000;    // to 0x1fff: chunks of large reductions
constexpr int movement = 0x2000;  // to 0x2fff: broadcast, allgather and all that only moves bytes
}  // namespace tag

class Messages {
 public:
  // All of these outlive the messages.
  Messages(const NodeLayout& layout, MessageComms& comms, const ErrorNotices& notices,
           MessageWaits& waits)
      : layout_(layout), comms_(comms), notices_(notices), waits_(waits) {}

  mpi::Comm comm() const noexcept { return comms_.all(); }

  // ---- tags of the call under way

  int small_tag() const noexcept { return tag::small + in_turn(32); }
  int movement_tag() const noexcept { return tag::movement + in_turn(0x1000); }
  int chunk_tag() const noexcept { return tag::chunks + 0x400 * in_turn(4); }  // of 16 slices

  // ---- blocking

  void send(const void* data, std::size_t bytes, int destination, int with_tag);
  void receive(void* data, std::size_t bytes, int source, int with_tag);
  // Sends and receives at once.
  void exchange(const void* sent, std::size_t sent_bytes, int destination, void* received,
                std::size_t received_bytes, int source, int with_tag);
  // Returns when every rank has come here. Throws where another one makes another call than
  // `header` says.
  void meet_all(const Header& header);

 private:
  int in_turn(std::uint64_t tags) const noexcept {
    return static_cast<int>(notices_.calls() % tags);
  }

  const NodeLayout& layout_;
  MessageComms& comms_;
  const ErrorNotices& notices_;
  MessageWaits& waits_;
};

}  // namespace ropewalk::collectives::nodes
