#include "support/injected_failures.hpp"

#include <dlfcn.h>
#include <execinfo.h>
#include <fcntl.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <atomic>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <new>

#include "support/marked_functions.hpp"
#include "support/operator_new.hpp"

namespace {

using ropewalk::test::inside_mpi;

thread_local int left = 0;  // calls to the one that fails; 0: none does
thread_local const char* failed = nullptr;
thread_local int open_code = 0;
thread_local int opens_left = 0;

// Whether this very call is the one.
bool fails(const char* what) noexcept {
  if (left == 0 || inside_mpi != 0 || --left != 0) return false;
  failed = what;
  if (std::getenv("ROPEWALK_TEST_BACKTRACE") != nullptr) {  // for who looks for the place
    void* frames[24];
    ++inside_mpi;
    backtrace_symbols_fd(frames, backtrace(frames, 24), STDERR_FILENO);
    --inside_mpi;
    std::fputs("----\n", stderr);
  }
  return true;
}

}  // namespace

void ropewalk::test::before_new(bool may_throw) {
  if (may_throw && fails("new")) throw std::bad_alloc();
}

// Sanitizers have these for themselves.
#if !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
extern "C" {

void* mmap(void* address, std::size_t bytes, int protection, int flags, int file,
           off_t offset) noexcept {
  if (fails("mmap")) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(
      ::syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

int memfd_create(const char* name, unsigned flags) noexcept {
  if (fails("memfd_create")) {
    errno = EMFILE;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_memfd_create, name, flags));
}

int open(const char* path, int flags, ...) {
  if ((flags & O_ACCMODE) == O_WRONLY && opens_left > 0) {
    --opens_left;
    errno = open_code;
    return -1;
  }
  if (fails("open")) {
    errno = EMFILE;
    return -1;
  }
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

int pthread_create(pthread_t* thread, const pthread_attr_t* attributes, void* (*body)(void*),
                   void* argument) noexcept {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const original = reinterpret_cast<Create*>(dlsym(RTLD_NEXT, "pthread_create"));
  if (fails("pthread_create")) return EAGAIN;
  return original(thread, attributes, body, argument);
}

}  // extern "C"
#endif

namespace ropewalk::test {

const mpi::Library* failing_library(const mpi::Library& of) {
  using F = mpi::Functions;
  static auto* const library = new mpi::Library(of.abi, of.path);  // kept, as a real one is
  library->call = of.call;
  mark<&F::initialized, &F::finalized, &F::query_thread, &F::comm_rank, &F::comm_size, &F::comm_dup,
       &F::comm_split, &F::comm_split_type, &F::comm_free, &F::comm_test_inter,
       &F::comm_set_errhandler, &F::comm_create_keyval, &F::comm_free_keyval, &F::comm_set_attr,
       &F::comm_get_attr, &F::comm_delete_attr, &F::send, &F::recv, &F::isend, &F::irecv,
       &F::isend_c, &F::irecv_c, &F::test, &F::wait, &F::testall, &F::waitall, &F::cancel,
       &F::iprobe, &F::get_elements_x, &F::barrier, &F::bcast, &F::bcast_c, &F::allgather,
       &F::allgather_c, &F::allreduce, &F::reduce, &F::scan, &F::exscan, &F::reduce_scatter,
       &F::reduce_scatter_block, &F::gather, &F::gatherv, &F::scatter, &F::scatterv, &F::allgatherv,
       &F::alltoall, &F::alltoallv, &F::ibarrier, &F::ibcast, &F::iallgather, &F::iallgatherv,
       &F::igather, &F::igatherv, &F::iscatter, &F::iscatterv, &F::ialltoall, &F::ialltoallv,
       &F::ireduce, &F::iallreduce, &F::ireduce_scatter, &F::ireduce_scatter_block, &F::iscan,
       &F::iexscan, &F::ibcast_c, &F::iallgather_c, &F::iallgatherv_c, &F::igather_c,
       &F::igatherv_c, &F::iscatter_c, &F::iscatterv_c, &F::ialltoall_c, &F::ialltoallv_c,
       &F::ireduce_c, &F::iallreduce_c, &F::ireduce_scatter_c, &F::ireduce_scatter_block_c,
       &F::iscan_c, &F::iexscan_c, &F::type_size_x, &F::type_get_extent, &F::type_get_true_extent,
       &F::op_commutative, &F::reduce_local, &F::error_string>(library->call);
  return library;
}

void fail_call(int number) noexcept {
  failed = nullptr;
  left = number;
}

void fail_open(int code, int times) noexcept {
  open_code = code;
  opens_left = times;
}
int opens_that_fail() noexcept { return opens_left; }

Exempt::Exempt() noexcept { ++inside_mpi; }
void Exempt::end() noexcept {
  if (open_) --inside_mpi;
  open_ = false;
}

std::string end_failing() noexcept {
  left = 0;
  return failed != nullptr ? failed : "";
}

}  // namespace ropewalk::test
