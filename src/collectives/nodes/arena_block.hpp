// Memory of the arena for the length of a call.
#pragma once

#include <algorithm>
#include <cstddef>

#include "mpi/mpi.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::collectives::nodes {

class ArenaBlock {
 public:
  explicit ArenaBlock(std::size_t bytes)
      : data_(Arena::process().allocate(std::max<std::size_t>(bytes, 1))) {}
  ~ArenaBlock() {
    // MPI may still write to it.
    if (!mpi::receives_left()) Arena::process().deallocate(data_);
  }
  ArenaBlock(const ArenaBlock&) = delete;
  ArenaBlock& operator=(const ArenaBlock&) = delete;

  std::byte* data() const noexcept { return static_cast<std::byte*>(data_); }

 private:
  void* data_;
};

}  // namespace ropewalk::collectives::nodes
