// One send or receive. Its owner keeps it, and its buffer, until it is over.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

namespace ropewalk::without_mpi {

class Mailbox;

// These are the values of the MPI-5 standard ABI, which the ranks without an MPI use.
inline constexpr int any_source = -1;
inline constexpr int any_tag = -2;

struct SocketTransfer {
  std::shared_ptr<Mailbox> mailbox = nullptr;  // of the communicator
  bool is_send = false;
  std::byte* data = nullptr;  // a send only reads it
  std::size_t bytes = 0;      // a receive has room for so many
  int peer = 0;               // the receiver, or the source
  int tag = 0;

  // The rest is set when it is over. The mutex of the mailbox guards it.
  bool over = false;
  bool cancelled = false;
  std::size_t received_bytes = 0;
  std::string error = {};  // empty where the message has gone or come
};

// Whether a message of this source and tag is one that a receive or probe asks for.
inline bool matches(int wanted_source, int wanted_tag, int source, int tag) noexcept {
  return (wanted_source == any_source || wanted_source == source) &&
         (wanted_tag == any_tag || wanted_tag == tag);
}

}  // namespace ropewalk::without_mpi
