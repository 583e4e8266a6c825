// These functions say on which processors threads may run.
#pragma once

#include <pthread.h>
#include <sys/types.h>

#include <string>
#include <vector>

namespace ropewalk::os {

// Lists processors by the kernel's number, ascending. Machines with more than 1024 are fine.
std::vector<int> thread_cpus(pid_t thread = 0);  // 0: the calling thread; empty where refused
// Returns an errno: EINVAL where none of the processors may be used (cpuset).
int set_thread_cpus(const std::vector<int>& cpus, pid_t thread = 0) noexcept;
int set_thread_cpus(pthread_t thread, const std::vector<int>& cpus) noexcept;

int current_cpu() noexcept;

// Parses "0-3,8,10-11" as sysfs writes it; unreadable parts are left out.
std::vector<int> parse_cpu_list(const std::string& text);
// The same of the text of a file; none where it cannot be read.
std::vector<int> read_cpu_list(const std::string& path);

}  // namespace ropewalk::os
