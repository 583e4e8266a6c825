// Counts beyond INT_MAX on an MPI without the MPI_*_c functions: one derived type is the message.
#pragma once

#include <climits>
#include <cstddef>

#include "mpi/library.hpp"

namespace ropewalk::mpi {

constexpr bool fits_int(std::size_t count) { return count <= static_cast<std::size_t>(INT_MAX); }

// `count` elements of `element` as one committed datatype with the same signature, so that it
// matches any other way of saying it. May be destroyed as soon as the call is started.
class LargeType {
 public:
  // block: elements of the inner contiguous type; any value well below INT_MAX will do.
  LargeType(std::size_t count, Datatype element, std::size_t block = std::size_t{1} << 30);
  ~LargeType();
  LargeType(const LargeType&) = delete;
  LargeType& operator=(const LargeType&) = delete;

  Word word() const noexcept { return type_; }

 private:
  Word type_ = 0;
};

}  // namespace ropewalk::mpi
