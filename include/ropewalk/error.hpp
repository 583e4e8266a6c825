// The one exception type of ropewalk, and what its codes mean.
#pragma once

#include <stdexcept>
#include <string>

namespace ropewalk {

// The numbers are those of the C API (RW_ERROR_* in ropewalk.h).
enum class ErrorCode : int {
  argument = 1,     // a value the caller passed: the message begins with the argument's name
  memory = 2,       // memory of the wanted kind cannot be had: the message names reason and remedy
  system = 3,       // a system call failed
  mpi = 4,          // an MPI call failed, or no MPI is loaded
  peer_dead = 5,    // another rank died: the message names it
  unsupported = 6,  // this machine or MPI cannot do it
  internal = 7      // a broken invariant of ropewalk itself
};

// Messages follow one form, "<argument or place>: <what was found, what was expected>; <remedy>".
class __attribute__((visibility("default"))) Error : public std::runtime_error {
 public:
  Error(ErrorCode code, const std::string& message) : std::runtime_error(message), code_(code) {}
  ErrorCode code() const noexcept { return code_; }

 private:
  ErrorCode code_;
};

}  // namespace ropewalk
