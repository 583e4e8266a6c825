#include "without_mpi/library.hpp"

#include <algorithm>
#include <cstring>

#include "mpi/load_functions.hpp"
#include "os/clock.hpp"
#include "ropewalk/error.hpp"
#include "without_mpi/members.hpp"

namespace ropewalk::without_mpi {
namespace {

// This stands in place of every function that is not here, and is called through pointers of other
// types. That works in the C calling conventions of x86-64 and AArch64, in which the caller takes
// the arguments away.
int unsupported() {
  return failed(
      "these ranks have no MPI, and this call needs one: start them with the launcher of an MPI, "
      "and import mpi4py before the process group is made");
}

void fill_environment(mpi::Functions& call) {
  constexpr auto level = [](int* out) { return *out = abi().thread_levels[3], 0; };
  call.query_thread = level;
  call.init_thread = [](int*, char***, int, int* out) { return *out = abi().thread_levels[3], 0; };
  call.initialized = [](int* flag) { return *flag = 1, 0; };
  call.finalized = [](int* flag) { return *flag = 0, 0; };
  call.finalize = [] { return 0; };
  call.error_string = [](int, char* text, int* length) {
    constexpr std::size_t room =
        511;  // MPI_MAX_ERROR_STRING is 512 in MPICH; ropewalk's own callers have room
    const std::size_t bytes = std::min(last_error().size(), room);
    std::memcpy(text, last_error().data(), bytes);
    text[bytes] = '\0';
    *length = static_cast<int>(bytes);
    return 0;
  };
  call.get_library_version = [](char* text, int* length) {
    constexpr char name[] = "no MPI: a key-value store and sockets";
    std::memcpy(text, name, sizeof name);
    *length = static_cast<int>(sizeof name - 1);
    return 0;
  };
  call.wtime = [] { return static_cast<double>(os::steady_ns()) * 1e-9; };
}

const mpi::Library* make_library() {
  auto* made = new mpi::Library(abi(), "a key-value store and sockets");
  made->has_collectives = false;
  mpi::Functions& call = made->call;
  mpi::load_functions(call, [](const char* name) {
    const std::string text = name;  // the functions of MPI 4 may be absent
    return text.ends_with("_c") ? nullptr : reinterpret_cast<void*>(&unsupported);
  });
  // These are absent: their callers do without them.
  call.comm_get_errhandler = nullptr;
  call.errhandler_free = nullptr;
  call.grequest_start = nullptr;
  call.info_create = nullptr;
  call.file_get_errhandler = nullptr;
  fill_environment(call);
  fill_communicators(call);
  fill_collectives(call);
  fill_messages(call);
  return made;
}

}  // namespace

void install() {
  static const mpi::Library* const ours = make_library();
  const mpi::Library* before = mpi::exchange_library(ours);
  if (before == nullptr || before == ours) return;
  mpi::exchange_library(before);
  throw Error(ErrorCode::unsupported, "store communicator: this process uses the MPI " +
                                          before->path +
                                          " already; make the communicator from one of MPI's");
}

}  // namespace ropewalk::without_mpi
