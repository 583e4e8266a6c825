// Memory of the arena for the length of one call.
#pragma once

#include <cstddef>
#include <vector>

namespace ropewalk::collectives {

class ScratchMemory {
 public:
  ScratchMemory();
  ~ScratchMemory();
  ScratchMemory(const ScratchMemory&) = delete;
  ScratchMemory& operator=(const ScratchMemory&) = delete;

  // Until release(). The first block of a call, if small, costs no allocation.
  std::byte* take(std::size_t bytes);
  // Does the same, and returns null where there is no memory: it is for a rank that has arrived,
  // and ends the call with leave(false).
  std::byte* try_take(std::size_t bytes) noexcept;
  void release() noexcept;

 private:
  std::vector<void*> blocks_;  // of this call
  void* kept_ = nullptr;       // from call to call, for the first block; null: not yet
  bool kept_in_use_ = false;
};

}  // namespace ropewalk::collectives
