// MPI_IN_PLACE and MPI_BOTTOM as Open MPI's Fortran passes them: the addresses of variables.
#pragma once

#include <array>
#include <cstddef>

namespace ropewalk::preload::fortran {

// The addresses that one of them may have.
class Sentinel {
 public:
  // Looks for the variable under the names that compilers give it. False where none is found, or
  // more than there is room for.
  bool find(const char* name, const char* NAME);
  bool is(const void* address) const noexcept {
    for (std::size_t i = 0; i < count_; ++i) {
      if (addresses_[i] == address) return true;
    }
    return false;
  }

 private:
  bool add(const void* address);

  std::array<const void*, 16> addresses_{};
  std::size_t count_ = 0;
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
