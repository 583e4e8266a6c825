// Making free memory scattered, and looking at how it lies; see fragmented.hpp.
#include "pages/fragmented.hpp"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstring>
#include <numeric>
#include <random>
#include <utility>

#include "common/parse.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t small_page = 4096;
constexpr std::size_t huge_page = std::size_t{2} << 20;
constexpr std::uint64_t present_bit = std::uint64_t{1} << 63;       // of a pagemap entry
constexpr std::uint64_t frame_mask = (std::uint64_t{1} << 55) - 1;  // its frame number

std::size_t rounded(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

[[noreturn]] void out_of_memory(const char* call, std::size_t bytes) {
  throw Error(ErrorCode::memory, fmt::format("{}: {} for {}; give smaller --sizes", call,
                                             std::strerror(errno), size_text(bytes)));
}

std::byte* anonymous_small(std::size_t bytes) {
  void* address = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (address == MAP_FAILED) out_of_memory("mmap", bytes);
  // Where transparent huge pages are off altogether this fails, and is not needed.
  madvise(address, bytes, MADV_NOHUGEPAGE);
  return static_cast<std::byte*>(address);
}

}  // namespace

FragmentedMemory::FragmentedMemory(std::size_t bytes) : bytes_(rounded(bytes, small_page)) {
  kept_ = anonymous_small(bytes_);
  std::byte* holes = nullptr;
  try {
    holes = anonymous_small(bytes_);
  } catch (const Error&) {
    munmap(kept_, bytes_);
    throw;
  }
  for (std::size_t at = 0; at < bytes_; at += small_page) {
    kept_[at] = std::byte{1};
    holes[at] = std::byte{1};
  }
  std::vector<std::size_t> order(bytes_ / small_page);
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::shuffle(order.begin(), order.end(), std::mt19937_64(2017));  // NOLINT: the same every run
  for (const std::size_t page : order) {
    madvise(holes + page * small_page, small_page, MADV_DONTNEED);
  }
  munmap(holes, bytes_);
}

FragmentedMemory::~FragmentedMemory() { munmap(kept_, bytes_); }

Contiguity contiguity_of(const std::vector<unsigned long long>& frames) {
  Contiguity found;
  unsigned long long before = 0;
  for (const unsigned long long frame : frames) {
    if (frame != 0) {
      ++found.pages;
      if (before == 0 || frame != before + 1) ++found.runs;
    }
    before = frame;
  }
  return found;
}

std::optional<Contiguity> contiguity(const void* address, std::size_t bytes) {
  const int file = open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC);
  if (file < 0) return std::nullopt;
  const auto first = reinterpret_cast<std::uintptr_t>(address) / small_page;
  const auto end =
      (reinterpret_cast<std::uintptr_t>(address) + bytes + small_page - 1) / small_page;
  std::vector<std::uint64_t> entries(end - first);
  const ssize_t got =
      pread(file, entries.data(), entries.size() * 8, static_cast<off_t>(first * 8));
  close(file);
  if (got != static_cast<ssize_t>(entries.size() * 8)) return std::nullopt;
  std::vector<unsigned long long> frames;
  bool visible = false;
  for (const std::uint64_t entry : entries) {
    frames.push_back((entry & present_bit) != 0 ? entry & frame_mask : 0);
    visible = visible || frames.back() != 0;
  }
  if (!visible) return std::nullopt;
  return contiguity_of(frames);
}

std::string text(const std::optional<Contiguity>& found) {
  if (!found) return "physical order not visible (needs root)";
  return fmt::format("{} physical runs, {} on average", found->runs,
                     size_text(found->mean_run_bytes()));
}

BlockMapping::BlockMapping(int descriptor, std::size_t bytes) : bytes_(rounded(bytes, small_page)) {
  // One 2 MiB more, cut to a 2 MiB boundary, and the file over it.
  const std::size_t reserved = bytes_ + huge_page;
  void* range =
      mmap(nullptr, reserved, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (range == MAP_FAILED) out_of_memory("mmap", reserved);
  const auto begin = reinterpret_cast<std::uintptr_t>(range);
  const std::uintptr_t aligned = rounded(begin, huge_page);
  if (aligned > begin) munmap(range, aligned - begin);
  munmap(reinterpret_cast<void*>(aligned + bytes_), begin + reserved - (aligned + bytes_));
  void* address = mmap(reinterpret_cast<void*>(aligned), bytes_, PROT_READ | PROT_WRITE,
                       MAP_SHARED | MAP_FIXED, descriptor, 0);
  if (address == MAP_FAILED) {
    const int reason = errno;
    munmap(reinterpret_cast<void*>(aligned), bytes_);
    errno = reason;
    out_of_memory("mmap of a shared buffer", bytes_);
  }
  data_ = static_cast<std::byte*>(address);
}

BlockMapping::~BlockMapping() {
  if (data_ != nullptr) munmap(data_, bytes_);
}

void BlockMapping::swap(BlockMapping& other) noexcept {
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

SmallPages::SmallPages(std::size_t bytes)
    : descriptor_(memfd_create("ropewalk-bench", MFD_CLOEXEC)) {
  if (descriptor_ < 0) out_of_memory("memfd_create", bytes);
  // fallocate would take the pages at once and in order; a size alone leaves them to first touch.
  if (ftruncate(descriptor_, static_cast<off_t>(rounded(bytes, small_page))) != 0) {
    const int reason = errno;
    close(descriptor_);
    errno = reason;
    out_of_memory("ftruncate", bytes);
  }
  try {
    mapping_ = BlockMapping(descriptor_, bytes);
  } catch (const Error&) {
    close(descriptor_);
    throw;
  }
  madvise(mapping_.data(), mapping_.bytes(), MADV_NOHUGEPAGE);
}

SmallPages::SmallPages(SmallPages&& other) noexcept
    : descriptor_(std::exchange(other.descriptor_, -1)), mapping_(std::move(other.mapping_)) {}

SmallPages& SmallPages::operator=(SmallPages&& other) noexcept {
  std::swap(descriptor_, other.descriptor_);
  mapping_ = std::move(other.mapping_);
  return *this;
}

SmallPages::~SmallPages() {
  if (descriptor_ >= 0) close(descriptor_);
}

}  // namespace ropewalk::bench
