// This file starts and ends MPI, tells which MPI it is, and gives its predefined handles.
#include <array>
#include <bit>
#include <cstdlib>
#include <limits>

#include "mpi/library.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::mpi {
namespace {

int code_of(ThreadLevel level) {
  return library().abi.thread_levels[static_cast<std::size_t>(level)];
}

ThreadLevel level_of(int code) {
  int level = 3;
  while (level > 0 && library().abi.thread_levels[static_cast<std::size_t>(level)] > code) --level;
  return static_cast<ThreadLevel>(level);
}

}  // namespace

Family family() { return library().abi.family; }

std::string library_version() {
  std::array<char, 8192> text{};  // MPICH's MPI_MAX_LIBRARY_VERSION_STRING, the largest
  int length = 0;
  check(library().call.get_library_version(text.data(), &length), "MPI_Get_library_version");
  const std::string whole = text.data();
  return whole.substr(0, whole.find('\n'));
}

bool initialized() {
  int flag = 0;
  check(library().call.initialized(&flag), "MPI_Initialized");
  return flag != 0;
}

bool finalized() {
  int flag = 0;
  check(library().call.finalized(&flag), "MPI_Finalized");
  return flag != 0;
}

void require_running(const char* remedy) {
  const bool ended = finalized();
  if (initialized() && !ended) return;
  throw Error(
      ErrorCode::mpi,
      std::string("MPI: ") + (ended ? "already finalised" : "not initialised") + "; " + remedy);
}

ThreadLevel init(ThreadLevel wanted) {
  if (finalized()) require_running("MPI starts once a process: finalise it last");
  if (initialized()) return thread_level();
  int provided = 0;
  check(library().call.init_thread(nullptr, nullptr, code_of(wanted), &provided),
        "MPI_Init_thread");
  return level_of(provided);
}

ThreadLevel thread_level() {
  int provided = 0;
  check(library().call.query_thread(&provided), "MPI_Query_thread");
  return level_of(provided);
}

void finalize() { check(library().call.finalize(), "MPI_Finalize"); }

void abort(int code) noexcept {
  try {
    library().call.abort(library().abi.comm_world, code);
  } catch (...) {  // no MPI: only this process is to end
  }
  std::abort();
}

double wtime() noexcept {
  try {
    return library().call.wtime();
  } catch (...) {
    return std::numeric_limits<double>::quiet_NaN();
  }
}

bool has_collectives() { return library().has_collectives; }

Comm comm_world() { return {library().abi.comm_world}; }
Comm comm_self() { return {library().abi.comm_self}; }
Comm comm_null() { return {library().abi.comm_null}; }
Request request_null() { return {library().abi.request_null}; }
Datatype byte_type() { return {library().abi.datatype(DatatypeName::byte_)}; }
Op null_op() { return {library().abi.op_null}; }
int any_source() { return library().abi.any_source; }
int any_tag() { return library().abi.any_tag; }
int proc_null() { return library().abi.proc_null; }
int undefined() { return library().abi.undefined; }

void* in_place() noexcept {
  // The value 1 is right for two of the three families, and for no call at all without a library.
  return std::bit_cast<void*>(loaded() ? library().abi.in_place : std::uintptr_t{1});
}

std::uintptr_t thread_identity() noexcept {
  if (!loaded() || library().call.thread_identity == nullptr) return 0;
  return library().call.thread_identity();
}

void adopt_thread_identity(std::uintptr_t identity) noexcept {
  if (!loaded() || library().call.adopt_thread_identity == nullptr) return;
  library().call.adopt_thread_identity(identity);
}

}  // namespace ropewalk::mpi
