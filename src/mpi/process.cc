// This file starts and ends MPI for programs without mpi.h: class Process, rw_init and rw_finalize.
#include "ropewalk/process.hpp"

#include <exception>
#include <string>

#include "c_call.hpp"
#include "mpi/mpi.hpp"

namespace ropewalk {

namespace {

const char* mpi_name(ThreadLevel level) {
  switch (level) {
    case ThreadLevel::single:
      return "MPI_THREAD_SINGLE";
    case ThreadLevel::funneled:
      return "MPI_THREAD_FUNNELED";
    case ThreadLevel::serialized:
      return "MPI_THREAD_SERIALIZED";
    case ThreadLevel::multiple:
      return "MPI_THREAD_MULTIPLE";
  }
  return "no thread level";
}

// Throws where the level that MPI provides is below the one wanted.
void check_level(ThreadLevel wanted, ThreadLevel provided) {
  if (provided >= wanted) return;
  throw Error(ErrorCode::unsupported,
              std::string("thread level: MPI gives ") + mpi_name(provided) + ", expected " +
                  mpi_name(wanted) +
                  "; use an MPI built with threads, or ask for less and use one lane without "
                  "threads");
}

// Starts MPI where it does not run yet, and ends it again where it gives less than is wanted.
ThreadLevel start(ThreadLevel wanted) {
  const bool running = mpi::initialized();
  const auto level = static_cast<ThreadLevel>(mpi::init(static_cast<mpi::ThreadLevel>(wanted)));
  if (!running && level < wanted) mpi::finalize();
  check_level(wanted, level);
  return level;
}

}  // namespace

Process::Process(ThreadLevel wanted) {
  if (wanted < ThreadLevel::single || wanted > ThreadLevel::multiple) {
    throw Error(ErrorCode::argument, "wanted: " + std::to_string(static_cast<int>(wanted)) +
                                         ", expected 0 to 3; pass a value of ThreadLevel");
  }
  const bool running = mpi::initialized();
  level_ = start(wanted);
  started_ = !running;
}

Process::~Process() {
  if (!started_ || unwinding_) return;
  try {
    if (!mpi::finalized()) mpi::finalize();
  } catch (const std::exception&) {  // nowhere to report it, and the process is about to end
  }
}

}  // namespace ropewalk

extern "C" {

int rw_init(void) {
  return ropewalk::c_call([] { ropewalk::start(ropewalk::ThreadLevel::multiple); });
}

int rw_finalize(void) {
  return ropewalk::c_call([] {
    if (ropewalk::mpi::finalized()) return;
    ropewalk::mpi::require_running("call rw_init first");
    ropewalk::mpi::finalize();
  });
}

int rw_comm_world(rw_mpi_comm* out) {
  return ropewalk::c_call([&] {
    ropewalk::require_argument(out, "out");
    *out = ropewalk::Communicator::world().handle();
  });
}

int rw_comm_rank(rw_mpi_comm comm, int* out) {
  return ropewalk::c_call([&] {
    ropewalk::require_argument(out, "out");
    *out = ropewalk::Communicator(comm).rank();
  });
}

int rw_comm_size(rw_mpi_comm comm, int* out) {
  return ropewalk::c_call([&] {
    ropewalk::require_argument(out, "out");
    *out = ropewalk::Communicator(comm).size();
  });
}

}  // extern "C"
