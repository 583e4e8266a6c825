// MPI_IN_PLACE and MPI_BOTTOM as Open MPI's Fortran passes them: the addresses of variables.
#pragma once

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>

namespace ropewalk::preload::fortran {

// The addresses that one of them may have.
class Sentinel {
 public:
  // Looks for the variable under the names that compilers give it. Returns false where none is
  // found, or more than there is room for.
  bool find(const char* name, const char* NAME);
  bool is(const void* address) const noexcept {
    const auto number = reinterpret_cast<std::uintptr_t>(address);
    if (number < lowest_ || number > highest_) return false;  // most buffers
    return std::find(addresses_.begin(), addresses_.begin() + count_, number) !=
           addresses_.begin() + count_;
  }

 private:
  bool add(const void* address);

  std::array<std::uintptr_t, 64> addresses_{};
  std::ptrdiff_t count_ = 0;
  std::uintptr_t lowest_ = UINTPTR_MAX;
  std::uintptr_t highest_ = 0;
};

class Sentinels {
 public:
  bool find() {
    return in_place_.find("mpi_fortran_in_place", "MPI_FORTRAN_IN_PLACE") &&
           bottom_.find("mpi_fortran_bottom", "MPI_FORTRAN_BOTTOM");
  }
  bool is_in_place(const void* address) const noexcept { return in_place_.is(address); }
  bool is_bottom(const void* address) const noexcept { return bottom_.is(address); }

 private:
  Sentinel in_place_;
  Sentinel bottom_;
};

}  // namespace ropewalk::preload::fortran
