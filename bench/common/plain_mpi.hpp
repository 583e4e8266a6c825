// What benchmarks call of the plain MPI and ropewalk itself has no use for. A handle is one word,
// as Communicator::handle() gives it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace ropewalk::bench {

using MpiWord = std::uintptr_t;

// A function of the loaded MPI by its name, as "PMPI_Alltoallw". Throws Error(unsupported) where
// the MPI has none.
void* mpi_symbol(const char* name);
template <class Function>
Function* mpi_function(const char* name) {
  return reinterpret_cast<Function*>(mpi_symbol(name));
}
// Throws Error(mpi, "<function>: <MPI's text>") unless the code is MPI_SUCCESS.
void check_mpi(int code, const char* function);
MpiWord mpi_double();  // MPI_DOUBLE

// A committed subarray of an array of doubles, in C's order.
class DoubleSubarray {
 public:
  DoubleSubarray(std::span<const int> sizes, std::span<const int> extents,
                 std::span<const int> starts);
  ~DoubleSubarray();
  DoubleSubarray(DoubleSubarray&&) noexcept;
  DoubleSubarray& operator=(DoubleSubarray&&) = delete;
  MpiWord word() const noexcept { return word_; }

 private:
  MpiWord word_ = 0;
};

// An array of handles as MPI's functions take it: ints behind each other where handles are ints.
class MpiHandles {
 public:
  void add(MpiWord handle);
  const void* data() const noexcept { return bytes_.data(); }

 private:
  std::vector<std::byte> bytes_;
};

}  // namespace ropewalk::bench
