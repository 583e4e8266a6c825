#include "os/memfd.hpp"

#include <fcntl.h>
#include <linux/memfd.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cerrno>

namespace ropewalk::os {
namespace {

unsigned page_flags(MemfdPages pages) noexcept {
  switch (pages) {
    case MemfdPages::hugetlb_2m:
      return MFD_HUGETLB | MFD_HUGE_2MB;
    case MemfdPages::hugetlb_1g:
      return MFD_HUGETLB | MFD_HUGE_1GB;
    case MemfdPages::normal:
      break;
  }
  return 0;
}

}  // namespace

Descriptor open_memfd(const char* name, MemfdPages pages) noexcept {
  Descriptor file(memfd_create(name, MFD_CLOEXEC | MFD_ALLOW_SEALING | page_flags(pages)));
  if (!file) return file;
  if (fcntl(file.get(), F_ADD_SEALS, F_SEAL_SHRINK | F_SEAL_SEAL) != 0) file.reset();
  return file;
}

int grow_file(int descriptor, std::uint64_t bytes) noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) == 0 && limit.rlim_cur != RLIM_INFINITY &&
      bytes > limit.rlim_cur) {
    return EFBIG;
  }
  while (ftruncate(descriptor, static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

int punch_hole(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept {
  while (fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                   static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace ropewalk::os
