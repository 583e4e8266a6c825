#include "messages/window_checks.hpp"

#include <string>

#include "ropewalk/error.hpp"

namespace ropewalk::messages {

void require_rank(int rank, int size) {
  if (rank >= 0 && rank < size) return;
  throw Error(ErrorCode::argument, "rank: " + std::to_string(rank) + " of a window of " +
                                       std::to_string(size) + "; pass 0 to its size - 1");
}

void require_range(std::size_t offset, std::size_t bytes, std::size_t end) {
  if (offset <= end && bytes <= end - offset) return;
  throw Error(ErrorCode::argument, "offset: " + std::to_string(bytes) + " bytes at " +
                                       std::to_string(offset) + " of a window of " +
                                       std::to_string(end) + "; pass a range inside of it");
}

void require_buffer(const void* buffer, std::size_t bytes, const char* name) {
  if (buffer != nullptr || bytes == 0) return;
  throw Error(ErrorCode::argument, std::string(name) + ": null for " + std::to_string(bytes) +
                                       " bytes; pass the buffer");
}

void require_element(bool is_atomic, ElementType type, std::size_t offset) {
  if (!is_atomic) {
    throw Error(ErrorCode::argument,
                "type: the operation is not atomic for this type; use elements of 1, 2, 4 or 8 "
                "bytes and an operation that MPI allows for them");
  }
  if (offset % size_of(type) == 0) return;
  throw Error(ErrorCode::argument, "offset: " + std::to_string(offset) +
                                       " is no multiple of the element's " +
                                       std::to_string(size_of(type)) + " bytes; align it");
}

void require_index(int index, int count) {
  if (index >= 0 && index < count) return;
  throw Error(ErrorCode::argument, "index: signal " + std::to_string(index) + " of " +
                                       std::to_string(count) +
                                       "; ask for more with WindowOptions::signals");
}

}  // namespace ropewalk::messages
