/* Stands before libc: the kernel's copies between processes refuse a range of addresses, of this
 * process and of any other, as they refuse what a driver has mapped (VM_IO, VM_PFNMAP). Only what
 * ropewalk asks for: an MPI that uses them for its messages may not expect that. */
#define _GNU_SOURCE 1
#include <dlfcn.h>
#include <errno.h>
#include <stdint.h>
#include <string.h>
#include <sys/syscall.h>
#include <sys/uio.h>
#include <unistd.h>

#include "refusing.h"

static int refuses(const void* caller, const struct iovec* there, unsigned long count) {
  Dl_info info;
  if (dladdr(caller, &info) == 0 || strstr(info.dli_fname, "libropewalk") == NULL) return 0;
  for (unsigned long i = 0; i < count; ++i) {
    const uintptr_t begin = (uintptr_t)there[i].iov_base;
    if (begin < REFUSED_BEGIN + REFUSED_BYTES && begin + there[i].iov_len > REFUSED_BEGIN) return 1;
  }
  return 0;
}

ssize_t process_vm_readv(pid_t pid, const struct iovec* here, unsigned long here_count,
                         const struct iovec* there, unsigned long there_count,
                         unsigned long flags) {
  if (refuses(__builtin_return_address(0), there, there_count)) {
    errno = EFAULT;
    return -1;
  }
  return syscall(SYS_process_vm_readv, pid, here, here_count, there, there_count, flags);
}

ssize_t process_vm_writev(pid_t pid, const struct iovec* here, unsigned long here_count,
                          const struct iovec* there, unsigned long there_count,
                          unsigned long flags) {
  if (refuses(__builtin_return_address(0), there, there_count)) {
    errno = EFAULT;
    return -1;
  }
  return syscall(SYS_process_vm_writev, pid, here, here_count, there, there_count, flags);
}
