#include "memory/private_copy.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <cerrno>

#include "os/mapping.hpp"
#include "os/memfd.hpp"

namespace ropewalk::memory {
namespace {

// pwrite, and not a copy through a second mapping: it fails with an error where a store would be
// signalled.
int write_all(int file, const std::byte* data, std::size_t bytes, std::size_t offset) noexcept {
  while (bytes > 0) {
    const ssize_t done = pwrite(file, data, bytes, static_cast<off_t>(offset));
    if (done < 0 && errno == EINTR) continue;
    if (done <= 0) return done == 0 ? ENOSPC : errno;
    data += done;
    offset += static_cast<std::size_t>(done);
    bytes -= static_cast<std::size_t>(done);
  }
  return 0;
}

}  // namespace

os::Descriptor copy_extents(const std::byte* base, std::size_t bytes,
                            std::span<const Extent> extents) noexcept {
  os::Descriptor file = os::open_memfd("ropewalk-fork", os::MemfdPages::normal);
  if (!file) return file;
  int error = os::grow_file(file.get(), bytes);
  for (const Extent& extent : extents) {
    if (error != 0) break;
    error = write_all(file.get(), base + extent.offset, extent.bytes, extent.offset);
  }
  if (error != 0) {
    file.reset();
    errno = error;
  }
  return file;
}

bool replace_mapping(std::byte* address, std::size_t bytes, std::size_t offset, os::Descriptor file,
                     int descriptor) noexcept {
  if (bytes > 0 && os::map_shared_at(address, file.get(), bytes, offset) != 0) return false;
  return dup3(file.get(), descriptor, O_CLOEXEC) == descriptor;
}

}  // namespace ropewalk::memory
