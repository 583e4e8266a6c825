// Argument checks of the collectives. They are local: a rank that refuses its arguments still
// arrives, with a header that differs from everybody's, so that the others get an error and do not
// wait.
#pragma once

#include <cstddef>
#include <string>

#include "collectives/state.hpp"

namespace ropewalk::collectives {

// Throws Error(argument), here and on the ranks that wait for this rank's call.
[[noreturn]] void refuse(Collectives::State&, const std::string& message);

inline void check_buffer(Collectives::State& state, const void* buffer, std::size_t bytes,
                         const char* argument) {
  if (buffer == nullptr && bytes > 0) [[unlikely]] {
    refuse(state, std::string(argument) + ": null for " + std::to_string(bytes) +
                      " bytes; pass a buffer of that size");
  }
}

inline void check_root(Collectives::State& state, int root) {
  if (root < 0 || root >= state.size) [[unlikely]] {
    refuse(state, "root: " + std::to_string(root) + " is no rank of this communicator; pass 0 to " +
                      std::to_string(state.size - 1));
  }
}

inline void check_counts(Collectives::State& state, const std::size_t* counts,
                         const char* argument) {
  if (counts == nullptr) [[unlikely]] {
    refuse(state, std::string(argument) + ": null; pass one value for each of the " +
                      std::to_string(state.size) + " ranks");
  }
}

// count x element bytes, refusing what no memory can hold.
std::size_t bytes_of(Collectives::State& state, std::size_t count, std::size_t element_bytes);

}  // namespace ropewalk::collectives
