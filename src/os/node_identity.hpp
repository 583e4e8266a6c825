// Which processes can share memory: one string, equal exactly where they can.
#pragma once

#include <string>

namespace ropewalk::os {

// Boot id and the inodes of this process's pid, ipc and mount namespaces. Two processes with equal
// strings run on the same booted kernel and see each other's pids and /proc; containers on one host
// differ, although they may have the same host name.
std::string node_identity();

// Boot id: equal for processes of one running kernel, whatever their namespaces.
std::string kernel_identity();

}  // namespace ropewalk::os
