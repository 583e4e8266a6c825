// What goes over a connection between two ranks: first a greeting, then messages, each behind its
// envelope. A connection carries the messages of one communicator in one direction.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <type_traits>

#include "node/monitored_process.hpp"

namespace ropewalk::without_mpi {

// The name of the communicator follows. Whoever does not know the id of the process it has reached
// is no rank of the job, or has reached another process than it wanted.
struct Greeting {
  enum Kind : std::uint32_t {
    messages = 1,  // of the communicator that the name says
    question = 2   // whether this is the wanted process: the answer is one byte, and the end
  };
  static constexpr std::uint32_t most_name_bytes = 1024;

  std::array<char, 8> magic{'r', 'w', 'm', 's', 'g', 's', '0', '1'};
  node::ProcessId wanted;
  std::uint32_t kind = messages;
  std::int32_t source = 0;  // rank in the group that opened the endpoint
  std::uint32_t name_bytes = 0;
  std::uint32_t unused = 0;
};
static_assert(std::is_trivially_copyable_v<Greeting>);

struct Envelope {
  std::int32_t tag = 0;
  std::uint32_t unused = 0;
  std::uint64_t bytes = 0;  // of the message that follows
};
static_assert(std::is_trivially_copyable_v<Envelope>);

// So much is sent to a rank, or read from one, before the others have their turn: two that send to
// each other would otherwise wait for each other's end.
inline constexpr std::size_t bytes_per_turn = std::size_t{2} << 20;

}  // namespace ropewalk::without_mpi
