// Address ranges that unmap themselves, and madvise with error codes instead of signals.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <utility>

namespace ropewalk::os {

constexpr std::size_t kib = 1024;
constexpr std::size_t mib = 1024 * kib;
constexpr std::size_t gib = 1024 * mib;
constexpr std::size_t huge_2m = 2 * mib;  // PMD page of x86-64, and of arm64 with 4 KiB pages

constexpr std::size_t round_up(std::size_t value, std::size_t multiple) noexcept {
  return (value + multiple - 1) / multiple * multiple;
}
constexpr std::size_t round_down(std::size_t value, std::size_t multiple) noexcept {
  return value / multiple * multiple;
}

std::size_t page_bytes() noexcept;  // of small pages: 4096 on x86-64

// Owns one address range. An invalid one means "could not be had", with the reason in errno.
class Mapping {
 public:
  Mapping() = default;
  Mapping(void* data, std::size_t bytes) noexcept
      : data_(static_cast<std::byte*>(data)), bytes_(bytes) {}
  Mapping(Mapping&& other) noexcept
      : data_(std::exchange(other.data_, nullptr)), bytes_(std::exchange(other.bytes_, 0)) {}
  Mapping& operator=(Mapping&& other) noexcept;
  Mapping(const Mapping&) = delete;
  Mapping& operator=(const Mapping&) = delete;
  ~Mapping() { reset(); }

  std::byte* data() const noexcept { return data_; }
  std::size_t bytes() const noexcept { return bytes_; }
  explicit operator bool() const noexcept { return data_ != nullptr; }
  std::byte* release() noexcept {
    bytes_ = 0;
    return std::exchange(data_, nullptr);
  }
  void reset() noexcept;  // errno is kept

 private:
  std::byte* data_ = nullptr;
  std::size_t bytes_ = 0;
};

// Reserves inaccessible addresses (PROT_NONE, no memory behind them), aligned to a power of two.
// They count towards RLIMIT_AS, not towards overcommit.
Mapping reserve_range(std::size_t bytes, std::size_t alignment) noexcept;

// A file, read-write and shared, at an address of the kernel's choice that is a multiple of
// `alignment`. On hugetlb the pages are reserved here: ENOMEM where the pool is short.
Mapping map_shared(int descriptor, std::size_t bytes, std::uint64_t offset = 0,
                   std::size_t alignment = 4096) noexcept;

// The same over part of a range the caller owns; returns an errno.
int map_shared_at(void* address, int descriptor, std::size_t bytes, std::uint64_t offset) noexcept;
// Inaccessible again; returns an errno.
int unmap_to_reserved(void* address, std::size_t bytes) noexcept;

// Returns a page of this process that reads as zero in every child, however it was made (Linux
// 4.14; before, or where it cannot be had, an invalid mapping).
Mapping wiped_by_fork() noexcept;

// The following functions return an errno, 0 for success, and never raise a signal.

// Makes every page present and writable. EFAULT means a touch would have been SIGBUS (empty hugetlb
// pool, full file system). Before Linux 5.14 (EINVAL) the file behind, if any, is allocated
// instead.
int populate_write(void* address, std::size_t bytes, int descriptor = -1,
                   std::uint64_t offset = 0) noexcept;
// Puts whole 2 MiB blocks on huge pages, now (Linux 6.1). EINVAL: a block has no page at all, or
// the kernel cannot; ENOMEM: no free huge page; EAGAIN, EBUSY: try again.
int collapse(void* address, std::size_t bytes) noexcept;
int advise_huge(void* address, std::size_t bytes) noexcept;
int advise_small(void* address, std::size_t bytes) noexcept;
// A child of fork or clone does not get the mapping: it has a hole there.
int keep_from_children(void* address, std::size_t bytes) noexcept;
int leave_to_children(void* address, std::size_t bytes) noexcept;  // the opposite
int leave_out_of_core_dumps(void* address, std::size_t bytes) noexcept;
// Gives pages of a shared mapping of a memfd back to the kernel; they read as zero afterwards.
// EINVAL means that they are locked in memory.
int remove_pages(void* address, std::size_t bytes) noexcept;
// The same by the file, whatever the mapping allows.
int punch_file(int descriptor, std::uint64_t offset, std::size_t bytes) noexcept;

// How many bytes of addresses a process may map in all, accessible or not (RLIMIT_AS); nothing
// where there is no limit.
std::optional<std::uint64_t> address_limit() noexcept;
// How many of them this process has mapped; 0 where /proc does not say.
std::uint64_t mapped_bytes();

}  // namespace ropewalk::os
