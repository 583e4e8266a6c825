// Where the adapters sit that join this machine to other nodes.
#pragma once

#include <string>
#include <vector>

namespace ropewalk::topology {

// Returns the NUMA nodes of the adapters that an MPI uses between nodes, ascending: those of verbs
// (InfiniBand, RoCE, Omni-Path, EFA) and of Slingshot, else the fastest network interfaces that are
// up. Empty where the kernel does not say, as in most virtual machines. `root` is a sysfs tree. The
// Python package finds the same (fabric.py).
std::vector<int> adapter_nodes(const std::string& root = "/sys");

// Returns the CPUs of these nodes, ascending.
std::vector<int> cpus_near_adapters(const std::string& root = "/sys");

}  // namespace ropewalk::topology
