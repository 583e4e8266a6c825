// Which processes may be able to share memory, by name; whether they really can is tried.
#pragma once

#include <string>

namespace ropewalk::os {

// Returns the boot id and the inodes of this process's pid and network namespaces. Two processes
// with equal strings run on the same booted kernel, mean the same process by a number, and the same
// socket by an abstract name. No other namespace decides: containers that are started for each rank
// have a mount namespace each, and often no other.
std::string node_identity();

// Returns the boot id, which is equal for processes of one running kernel, whatever their
// namespaces.
std::string kernel_identity();

}  // namespace ropewalk::os
