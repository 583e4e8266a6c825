// A child's own copy of a shared mapping, at the same address and under the same descriptor.
#pragma once

#include <cstddef>
#include <span>

#include "os/file.hpp"

namespace ropewalk::memory {

struct Extent {
  std::size_t offset;
  std::size_t bytes;
};

// Whether there is memory for a copy of so many bytes; else errno is ENOMEM. No copy is better than
// a process that the kernel kills for memory, perhaps the parent.
bool has_room_for(std::size_t bytes) noexcept;

// Returns a new memfd of `bytes` with the extents of [base, base + bytes) copied; it is invalid
// with errno where there is no room. It never raises SIGBUS or SIGXFSZ.
os::Descriptor copy_extents(const std::byte* base, std::size_t bytes,
                            std::span<const Extent> extents) noexcept;

// Does the same for a memfd, `bytes` long or longer, that need not be mapped. What was never
// written in it is not copied and takes no memory.
os::Descriptor copy_file(int file, std::size_t bytes, std::span<const Extent> extents) noexcept;

// Maps `file`, from `offset`, over [address, address + bytes) and gives it the number `descriptor`.
bool replace_mapping(std::byte* address, std::size_t bytes, std::size_t offset, os::Descriptor file,
                     int descriptor) noexcept;

}  // namespace ropewalk::memory
