#include "os/pidfd.hpp"

#include <poll.h>
#include <sys/syscall.h>
#include <unistd.h>

namespace ropewalk::os {

Descriptor open_pidfd(pid_t process) noexcept {
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_open, process, 0)));
}

Descriptor take_descriptor(const Descriptor& pidfd, int descriptor) noexcept {
  return Descriptor(static_cast<int>(syscall(SYS_pidfd_getfd, pidfd.get(), descriptor, 0)));
}

bool is_dead(const Descriptor& pidfd) noexcept {
  pollfd entry{pidfd.get(), POLLIN, 0};  // a pidfd becomes readable when its process ends
  return poll(&entry, 1, 0) == 1 && (entry.revents & POLLIN) != 0;
}

}  // namespace ropewalk::os
