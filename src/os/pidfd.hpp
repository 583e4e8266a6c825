// Other processes of the node as descriptors: is one dead, and what it has open.
#pragma once

#include <sys/types.h>

#include "os/file.hpp"

namespace ropewalk::os {

// Linux 5.3. Invalid with errno ESRCH where there is no such process, ENOSYS on older kernels.
Descriptor open_pidfd(pid_t process) noexcept;

// A duplicate of `descriptor` of the other process (Linux 5.6). Needs the right to ptrace it: same
// user, and yama's ptrace_scope 0 or PR_SET_PTRACER; else errno EPERM.
Descriptor take_descriptor(const Descriptor& pidfd, int descriptor) noexcept;

// True once the process has ended, also as a zombie that nobody has waited for. One system call.
bool is_dead(const Descriptor& pidfd) noexcept;

}  // namespace ropewalk::os
