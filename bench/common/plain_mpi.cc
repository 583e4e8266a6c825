#include "common/plain_mpi.hpp"

#include <dlfcn.h>

#include <string>
#include <utility>

#include "mpi/datatypes.hpp"
#include "mpi/library.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {

void* mpi_symbol(const char* name) {
  void* file = dlopen(mpi::library().path.c_str(), RTLD_NOW | RTLD_NOLOAD);
  void* found = dlsym(file != nullptr ? file : RTLD_DEFAULT, name);
  if (found == nullptr) {
    throw Error(ErrorCode::unsupported, std::string("--ways: this MPI has no ") + name +
                                            "; leave the ways of MPI out, or take MPI 3");
  }
  return found;
}

void check_mpi(int code, const char* function) { mpi::check(code, function); }
MpiWord mpi_double() { return mpi::datatype(ElementType::float64).value; }

DoubleSubarray::DoubleSubarray(std::span<const int> sizes, std::span<const int> extents,
                               std::span<const int> starts) {
  using Create = int(int, const int*, const int*, const int*, int, MpiWord, MpiWord*);
  check_mpi(mpi_function<Create>("PMPI_Type_create_subarray")(
                static_cast<int>(sizes.size()), sizes.data(), extents.data(), starts.data(),
                mpi::library().abi.order_c, mpi_double(), &word_),
            "MPI_Type_create_subarray");
  check_mpi(mpi::library().call.type_commit(&word_), "MPI_Type_commit");
}

DoubleSubarray::~DoubleSubarray() {
  if (word_ != 0) mpi::library().call.type_free(&word_);
}

DoubleSubarray::DoubleSubarray(DoubleSubarray&& other) noexcept
    : word_(std::exchange(other.word_, 0)) {}

void MpiHandles::add(MpiWord handle) {
  const auto* begin = reinterpret_cast<const std::byte*>(&handle);
  bytes_.insert(bytes_.end(), begin,
                begin + (mpi::library().abi.int_handles ? sizeof(int) : sizeof handle));
}

}  // namespace ropewalk::bench
