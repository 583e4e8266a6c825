// Other processes of the node as descriptors: whether a process has ended, and copies of its
// descriptors.
#pragma once

#include <sys/types.h>

#include <cstdint>
#include <memory>

#include "os/file.hpp"

namespace ropewalk::os {

// This needs Linux 5.3. The result is invalid with errno ESRCH where there is no such process,
// ENOSYS on older kernels.
Descriptor open_pidfd(pid_t process) noexcept;

// A duplicate of `descriptor` of the other process (Linux 5.6). It needs the right to ptrace the
// process: same user and user namespace, and yama's ptrace_scope 0 or PR_SET_PTRACER; else errno
// EPERM.
Descriptor take_descriptor(const Descriptor& pidfd, int descriptor) noexcept;

// When the process began, in clock ticks since boot: with its number it names one process, whose
// number may go to another later. 0 where /proc does not say.
std::uint64_t start_of_process(pid_t process) noexcept;

// Whether a process has ended, by a pidfd that is kept open. Programs close descriptors that they
// do not know, and open files under the same numbers: so before each use the watch checks that the
// descriptor is still its own, and opens another one where it is not; the foreign one is left
// alone. Thread-safe, except for moves.
class ProcessWatch {
 public:
  ProcessWatch() noexcept;  // of no process, which never ends
  explicit ProcessWatch(pid_t process);
  ProcessWatch(pid_t process, Descriptor pidfd);
  ProcessWatch(ProcessWatch&&) noexcept;
  ProcessWatch& operator=(ProcessWatch&&) noexcept;
  ~ProcessWatch();

  // Returns false where there is no such process, or no pidfd on this kernel.
  explicit operator bool() const noexcept { return state_ != nullptr; }

  // True once the process has ended, also as a zombie that nobody has waited for. One system call;
  // one more at every 64th look.
  bool ended() const noexcept;
  // True while the process is stopped by a signal or by a debugger. Reads a file of /proc; false
  // where that does not say.
  bool stopped() const noexcept;

 private:
  struct State;
  std::unique_ptr<State> state_;
};

}  // namespace ropewalk::os
