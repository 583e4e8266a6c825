#include "os/mapping.hpp"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>

#include "os/file.hpp"

namespace ropewalk::os {
namespace {

// The constant is not in the headers of Debian 12's libc; it comes from linux/mman.h and is stable
// since Linux 6.1.
constexpr int advice_collapse = 25;

int advise(void* address, std::size_t bytes, int advice) noexcept {
  while (madvise(address, bytes, advice) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

// This bypasses whatever intercepts libc's madvise: the malloc library keeps the program from
// deciding this for its blocks.
int advise_fork(void* address, std::size_t bytes, int advice) noexcept {
  return syscall(SYS_madvise, address, bytes, advice) == 0 ? 0 : errno;
}

int allocate_file(int descriptor, std::uint64_t offset, std::size_t bytes) noexcept {
  while (fallocate(descriptor, 0, static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

}  // namespace

std::size_t page_bytes() noexcept {
  static const std::size_t bytes = static_cast<std::size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

Mapping& Mapping::operator=(Mapping&& other) noexcept {
  if (this != &other) {
    reset();
    data_ = std::exchange(other.data_, nullptr);
    bytes_ = std::exchange(other.bytes_, 0);
  }
  return *this;
}

void Mapping::reset() noexcept {
  if (data_ == nullptr) return;
  const int kept = errno;
  munmap(data_, bytes_);
  errno = kept;
  data_ = nullptr;
  bytes_ = 0;
}

Mapping reserve_range(std::size_t bytes, std::size_t alignment) noexcept {
  if (bytes == 0 || bytes > SIZE_MAX - alignment) {
    errno = ENOMEM;
    return {};
  }
  bytes = round_up(bytes, page_bytes());
  const std::size_t slack = alignment > page_bytes() ? alignment : 0;
  void* found =
      mmap(nullptr, bytes + slack, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (found == MAP_FAILED) return {};
  auto* start = static_cast<std::byte*>(found);
  const auto address = reinterpret_cast<std::uintptr_t>(found);
  const std::size_t head = slack == 0 ? 0 : round_up(address, alignment) - address;
  if (head > 0) munmap(start, head);
  if (slack > head) munmap(start + head + bytes, slack - head);
  return {start + head, bytes};
}

Mapping map_shared(int descriptor, std::size_t bytes, std::uint64_t offset,
                   std::size_t alignment) noexcept {
  Mapping range = reserve_range(bytes, alignment);
  if (!range) return {};
  if (const int error = map_shared_at(range.data(), descriptor, range.bytes(), offset)) {
    errno = error;
    return {};
  }
  return range;
}

int map_shared_at(void* address, int descriptor, std::size_t bytes, std::uint64_t offset) noexcept {
  void* found = mmap(address, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, descriptor,
                     static_cast<off_t>(offset));
  return found == MAP_FAILED ? errno : 0;
}

int unmap_to_reserved(void* address, std::size_t bytes) noexcept {
  void* found = mmap(address, bytes, PROT_NONE,
                     MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED, -1, 0);
  return found == MAP_FAILED ? errno : 0;
}

Mapping wiped_by_fork() noexcept {
  const std::size_t bytes = page_bytes();
  void* found = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (found == MAP_FAILED) return {};
  Mapping page(found, bytes);
  if (advise(found, bytes, MADV_WIPEONFORK) != 0) page.reset();
  return page;
}

int populate_write(void* address, std::size_t bytes, int descriptor,
                   std::uint64_t offset) noexcept {
  const int error = advise(address, bytes, MADV_POPULATE_WRITE);
  if (error == EINVAL && descriptor >= 0) return allocate_file(descriptor, offset, bytes);
  return error;
}

int collapse(void* address, std::size_t bytes) noexcept {
  return advise(address, bytes, advice_collapse);
}
int advise_huge(void* address, std::size_t bytes) noexcept {
  return advise(address, bytes, MADV_HUGEPAGE);
}
int advise_small(void* address, std::size_t bytes) noexcept {
  return advise(address, bytes, MADV_NOHUGEPAGE);
}
int keep_from_children(void* address, std::size_t bytes) noexcept {
  return advise_fork(address, bytes, MADV_DONTFORK);
}
int leave_to_children(void* address, std::size_t bytes) noexcept {
  return advise_fork(address, bytes, MADV_DOFORK);
}
int leave_out_of_core_dumps(void* address, std::size_t bytes) noexcept {
  return advise(address, bytes, MADV_DONTDUMP);
}
int remove_pages(void* address, std::size_t bytes) noexcept {
  return advise(address, bytes, MADV_REMOVE);
}
int punch_file(int descriptor, std::uint64_t offset, std::size_t bytes) noexcept {
  while (fallocate(descriptor, FALLOC_FL_PUNCH_HOLE | FALLOC_FL_KEEP_SIZE,
                   static_cast<off_t>(offset), static_cast<off_t>(bytes)) != 0) {
    if (errno != EINTR) return errno;
  }
  return 0;
}

std::optional<std::uint64_t> address_limit() noexcept {
  rlimit limit{};
  if (getrlimit(RLIMIT_AS, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY) return std::nullopt;
  return limit.rlim_cur;
}

std::uint64_t mapped_bytes() { return read_number("/proc/self/statm").value_or(0) * page_bytes(); }

}  // namespace ropewalk::os
