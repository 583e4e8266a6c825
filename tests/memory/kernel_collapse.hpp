// Whether a test that got no collapsed pages may be skipped, or has found a fault of ours.
#pragma once

#include <sys/mman.h>
#include <unistd.h>

#include <cstdint>
#include <string>

namespace ropewalk::test {

// The bare system calls, without a line of ropewalk: memfd, touch, MADV_COLLAPSE.
inline bool kernel_collapses() {
  constexpr std::size_t huge = std::size_t{2} << 20;
  constexpr int advice_collapse = 25;
  const int file = memfd_create("probe", MFD_CLOEXEC);
  if (file < 0 || ftruncate(file, huge) != 0) return false;
  auto* range = static_cast<char*>(
      mmap(nullptr, 2 * huge, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0));
  char* at = range + (huge - reinterpret_cast<std::uintptr_t>(range) % huge);
  bool done = false;
  if (mmap(at, huge, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, file, 0) == at) {
    at[0] = 1;
    for (int attempt = 0; attempt < 4 && !done; ++attempt) {
      done = madvise(at, huge, advice_collapse) == 0;
    }
  }
  munmap(range, 2 * huge);
  close(file);
  return done;
}

// Huge pages run out, and collapsing loses races: then the error has one of these names.
inline bool may_lack_huge_pages(const std::string& error) {
  for (const char* passing : {"ENOMEM", "EAGAIN", "EBUSY"}) {
    if (error.find(passing) != std::string::npos) return true;
  }
  return !kernel_collapses();
}

}  // namespace ropewalk::test
