// memfd: shared memory that has no name, so nothing is left behind after kill -9.
#pragma once

#include <cstddef>
#include <cstdint>

#include "os/file.hpp"

namespace ropewalk::os {

enum class MemfdPages { normal, hugetlb_2m, hugetlb_1g };

// Opens an empty memfd, closed on exec. It is sealed at once, so that nobody who gets the
// descriptor can shrink it under a mapping (which would be SIGBUS) or add seals; it can still grow.
// The name shows in proc/PID/maps only. It is invalid with errno where it cannot be had (ENOSYS,
// EINVAL: no such huge pages, EMFILE).
Descriptor open_memfd(const char* name, MemfdPages pages) noexcept;

// Grows to `bytes`. Returns an errno, 0 for success. A size above RLIMIT_FSIZE gives EFBIG; the
// kernel would kill the process with SIGXFSZ, so it is checked before.
int grow_file(int descriptor, std::uint64_t bytes) noexcept;

// Gives the pages of a range back to the kernel; they read as zero afterwards. Returns an errno.
int punch_hole(int descriptor, std::uint64_t offset, std::uint64_t bytes) noexcept;

}  // namespace ropewalk::os
