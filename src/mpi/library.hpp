// Finds the MPI library of this process and fills the table of its functions.
//
// Order: an MPI whose symbols the whole process sees; an MPI that a plug-in loaded for itself (as
// mpi4py's extension module in Python); the file that ROPEWALK_MPI_LIBRARY names. An MPI that the
// process has loaded already is always preferred: two of them in one process corrupt each other.
#pragma once

#include <cstdint>
#include <string>

#include "mpi/abi.hpp"
#include "mpi/functions.hpp"
#include "mpi/handle_map.hpp"
#include "mpi/mpi.hpp"

namespace ropewalk::mpi {

struct Library {
  Library(const Abi&, std::string file);

  Abi abi;
  Functions call;
  std::string path;             // file the functions come from
  bool has_collectives = true;  // false: it has those alone that ropewalk itself needs
  HandleMap<DatatypeName> datatypes;
  HandleMap<OpName> ops;
};

// Found at first use and kept. Throws Error(mpi) with the remedy; a later call looks again.
const Library& library();

// The tests' way to put another MPI in place. Returns what was there, null if none was found yet.
const Library* exchange_library(const Library*) noexcept;

inline std::uintptr_t address(const void* pointer) noexcept {
  return reinterpret_cast<std::uintptr_t>(pointer);
}

// The handle of MPI_ERRORS_RETURN.
Word errors_return();

// Throws Error(mpi, "<function>: <MPI's text>") unless the code is MPI_SUCCESS.
[[noreturn]] void fail(int code, const char* function);
inline void check(int code, const char* function) {
  if (code != 0) [[unlikely]] {
    fail(code, function);
  }
}

}  // namespace ropewalk::mpi
