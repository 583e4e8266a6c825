#include "memory/private_copy.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <new>

#include "os/hugepool.hpp"
#include "os/mapping.hpp"
#include "os/memfd.hpp"

namespace ropewalk::memory {
namespace {

// It calls pwrite instead of copying through a second mapping, because pwrite fails with an error
// where a store would raise a signal.
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

// Calls use(Extent) for each run of the extents that the file has pages for, until it returns an
// error. Kernels and files without SEEK_DATA give the whole extent.
template <class Use>
int for_data(int file, std::span<const Extent> extents, const Use& use) noexcept {
  for (const Extent& extent : extents) {
    const std::size_t end = extent.offset + extent.bytes;
    for (std::size_t at = extent.offset; at < end;) {
      const off_t data = lseek(file, static_cast<off_t>(at), SEEK_DATA);
      if (data < 0 && errno == ENXIO) break;
      if (data >= 0) at = static_cast<std::size_t>(data);
      if (at >= end) break;
      const off_t hole = data < 0 ? -1 : lseek(file, static_cast<off_t>(at), SEEK_HOLE);
      const std::size_t stop = hole < 0 ? end : std::min(end, static_cast<std::size_t>(hole));
      if (const int error = use(Extent{at, stop - at})) return error;
      at = stop;
    }
  }
  return 0;
}

}  // namespace

bool has_room_for(std::size_t bytes) noexcept {
  try {
    if (bytes == 0 || bytes <= os::available_memory().bytes) return true;
  } catch (const std::bad_alloc&) {  // not even for a text
  }
  errno = ENOMEM;
  return false;
}

os::Descriptor copy_extents(const std::byte* base, std::size_t bytes,
                            std::span<const Extent> extents) noexcept {
  std::size_t sum = 0;
  for (const Extent& extent : extents) sum += extent.bytes;
  os::Descriptor file;
  if (!has_room_for(sum)) return file;
  file = os::open_memfd("ropewalk-fork", os::MemfdPages::normal);
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

os::Descriptor copy_file(int file, std::size_t bytes, std::span<const Extent> extents) noexcept {
  std::size_t sum = 0;
  for_data(file, extents, [&](Extent run) {
    sum += run.bytes;
    return 0;
  });
  os::Descriptor copy;
  if (!has_room_for(sum)) return copy;
  copy = os::open_memfd("ropewalk-fork", os::MemfdPages::normal);
  if (!copy) return copy;
  int error = os::grow_file(copy.get(), bytes);
  if (error == 0 && sum > 0) {
    const os::Mapping view = os::map_shared(file, bytes);
    error = view ? for_data(file, extents,
                            [&](Extent run) {
                              return write_all(copy.get(), view.data() + run.offset, run.bytes,
                                               run.offset);
                            })
                 : errno;
  }
  if (error != 0) {
    copy.reset();
    errno = error;
  }
  return copy;
}

bool replace_mapping(std::byte* address, std::size_t bytes, std::size_t offset, os::Descriptor file,
                     int descriptor) noexcept {
  if (bytes > 0 && os::map_shared_at(address, file.get(), bytes, offset) != 0) return false;
  return dup3(file.get(), descriptor, O_CLOEXEC) == descriptor;
}

}  // namespace ropewalk::memory
