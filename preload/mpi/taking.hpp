// These functions take a message that has come: they tell a descriptor from the program's own
// bytes, and copy the data to where it was to be received.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>

#include "collectives/datatypes.hpp"
#include "datatypes.hpp"
#include "envelope.hpp"
#include "functions.hpp"
#include "message_peers.hpp"

namespace ropewalk::preload::messages {

// A Destination says where a receive puts its data.
struct Destination {
  void* buffer = nullptr;
  Count count = 0;
  collectives::Elements elements;
  // The elements lie side by side, so that this process copies them. Any others are copied by MPI.
  bool direct = false;
  Word comm = 0;
};
// Fills in the destination. Returns false where MPI must judge the arguments.
bool describe(void* buffer, Count, Word type, Word comm, Destination&) noexcept;
// Fills in the destination, and returns true where a descriptor may come for this receive. It
// returns false where the receive has no room for a large message, or MPI must judge its arguments.
bool may_be_announced(void* buffer, Count, Word type, Word comm, Destination&) noexcept;
// The same of a destination that has been filled in.
bool may_be_announced(const Destination&) noexcept;
// Returns the bytes of the elements of a destination, without gaps.
std::size_t bytes_at(const Destination&) noexcept;
// Returns a copy of them, for std::free, or null. MPI may have no count for an element of more than
// 2 GiB of a type with gaps.
void* copy_of(const Destination&) noexcept;
constexpr const char* no_copy =
    "an exchange in place for which there is no memory, or of a datatype with gaps whose element "
    "has more than 2 GiB; set ROPEWALK_MESSAGES=off for the latter";
// Keeps the type of a blocking receive, which another thread may free meanwhile.
class KeptType {
 public:
  explicit KeptType(Destination&) noexcept;
  ~KeptType();
  KeptType(const KeptType&) = delete;
  KeptType& operator=(const KeptType&) = delete;

 private:
  mpi::Datatype own_{};
  bool owns_ = false;
};

// Says at little cost whether a message of so many elements may be large. Most messages are small,
// and of one type; the elements of a type that the program made for one message are not worth
// finding out.
bool may_be_large_of(Word type, Count count) noexcept;
inline std::atomic<Word> last_predefined{0};  // the predefined type that was seen last
inline bool may_be_large(Word type, Count count) noexcept {
  constexpr std::size_t most_element = 32;  // bytes of the largest predefined type
  if (static_cast<std::size_t>(count) * most_element >= ranks.limits.least_bytes) return true;
  if (clean(type) == last_predefined.load(std::memory_order_relaxed)) return false;
  return may_be_large_of(type, count);
}

struct Taken {
  int code = 0;         // MPI's code for the receive
  bool raised = false;  // MPI has called the error handler with it
  // The number of bytes received; -1 where it was the program's own message, whose status is right.
  std::int64_t bytes = -1;
  // MPI's status is not that of the message, which the next three tell.
  bool tells_status = false;
  int source = 0;
  int tag = 0;
  bool cancelled = false;
};
// Says what a completed receive has brought, and copies the data where that was a descriptor.
Taken take(const Destination&, const void* status) noexcept;
// Copies the data of a descriptor to where it was to be received.
Taken receive(const Destination&, const MessageDescriptor&, const MessagePeer& sender) noexcept;
// Copies the program's own bytes there, which were received elsewhere.
Taken receive_bytes(const Destination&, const std::byte*, std::size_t) noexcept;
// Corrects the status of a receive to what was taken.
void mend(const Taken&, void* status) noexcept;

}  // namespace ropewalk::preload::messages
