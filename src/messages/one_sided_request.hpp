// What a rank asks of the window of a rank on another node: a message that begins with this header,
// with the data behind it.
//
// Requests of one rank are served in the order in which it has sent them. Larger data of a put is a
// message of its own, which follows its request and is received where it belongs. What is asked for
// comes back as an answer. Ranks of one job run the same program on the same kind of processor, so
// the header travels as it lies in memory.
#pragma once

#include <cstddef>
#include <cstdint>

#include "ropewalk/types.hpp"

namespace ropewalk::messages {

struct OneSidedRequest {
  enum class Kind : std::uint32_t {
    put,             // the data is behind the header
    put_of_its_own,  // the data follows as a message
    get,
    accumulate,
    fetch_and_op,      // the data is the operand, but for no_op
    compare_and_swap,  // the data is what is expected, then what is desired
    signal,
    flush,  // is answered once all that the rank has asked before is done
    leave,  // the rank has left the window while an exception was on its way; nothing follows
  };

  Kind kind = Kind::flush;
  ElementType type = ElementType::uint8;
  ReductionOp op = ReductionOp::no_op;
  std::int32_t signal = 0;   // which counter
  std::uint64_t offset = 0;  // in the window of the rank that is asked, in bytes
  std::uint64_t amount = 0;  // elements of an accumulate, bytes of the rest; what a signal adds
};

inline constexpr int window_request_tag = 1;
inline constexpr int window_data_tag = 2;
inline constexpr int window_answer_tag = 3;

// Up to so many bytes of data lie behind their request. MPIs send so much without a handshake, and
// two copies of it cost about a microsecond, which is little beside a message between nodes.
inline constexpr std::size_t most_inline_bytes = 8192;

}  // namespace ropewalk::messages
