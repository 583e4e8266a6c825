// MPI of this process, for programs that use ropewalk alone and include no mpi.h.
#pragma once

#include "ropewalk/communicator.hpp"
#include "ropewalk/detail/unwinding.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/export.hpp"

namespace ropewalk {

// How many threads will call into MPI: the thread levels of the MPI standard.
enum class ThreadLevel : int { single = 0, funneled = 1, serialized = 2, multiple = 3 };

// Starts MPI for its lifetime; make one at the top of main.
//   ropewalk::Process process;
//   ropewalk::EndpointSet endpoints(process.world());
// Where MPI runs already, it is used as it is and left running. Throws Error(mpi) where no MPI is
// loaded, Error(unsupported) where the MPI gives less than the wanted level.
class RW_EXPORT Process {
 public:
  explicit Process(ThreadLevel wanted = ThreadLevel::multiple);
  // Finalises MPI; collective, as MPI_Finalize is. While an exception unwinds the stack it does
  // not: other ranks may be waiting for this one, and the launcher ends them when it sees this
  // process end.
  ~Process();
  Process(const Process&) = delete;
  Process& operator=(const Process&) = delete;

  Communicator world() const { return Communicator::world(); }
  ThreadLevel thread_level() const noexcept { return level_; }

 private:
  ThreadLevel level_ = ThreadLevel::single;
  bool started_ = false;
  detail::Unwinding unwinding_;
};

}  // namespace ropewalk
