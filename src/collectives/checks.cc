#include "collectives/checks.hpp"

#include <cstdint>

namespace ropewalk::collectives {

void refuse(Collectives::State& state, const std::string& message) {
  state.backend->refuse(message.c_str());
  throw Error(ErrorCode::argument, message);
}

std::size_t bytes_of(Collectives::State& state, std::size_t count, std::size_t element_bytes) {
  if (element_bytes > 0 && count > PTRDIFF_MAX / element_bytes) {
    refuse(state, "count: " + std::to_string(count) +
                      " elements are more than memory can hold; pass a smaller count");
  }
  return count * element_bytes;
}

}  // namespace ropewalk::collectives
