#include "os/cores.hpp"

#include <dirent.h>
#include <pthread.h>
#include <sched.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

#include "os/affinity.hpp"

namespace ropewalk::os {
namespace {

struct CloseDirectory {
  void operator()(DIR* directory) const noexcept { closedir(directory); }
};

std::vector<pid_t> threads_of_this_process() {
  std::vector<pid_t> threads;
  const std::unique_ptr<DIR, CloseDirectory> directory(opendir("/proc/self/task"));
  if (!directory) return threads;
  while (const dirent* entry = readdir(directory.get())) {  // "." and ".." come to 0
    const int thread = std::atoi(entry->d_name);
    if (thread > 0) threads.push_back(thread);
  }
  return threads;
}

}  // namespace

std::vector<int> process_cores() {
  std::vector<int> cores = thread_cpus();
  for (const pid_t thread : threads_of_this_process()) {
    const std::vector<int> more = thread_cpus(thread);  // empty if it has just ended
    cores.insert(cores.end(), more.begin(), more.end());
  }
  std::sort(cores.begin(), cores.end());
  cores.erase(std::unique(cores.begin(), cores.end()), cores.end());
  if (cores.empty()) cores.push_back(0);  // affinity cannot be read: count on one core
  return cores;
}

void run_this_thread_on(const std::vector<int>& cores) noexcept {
  // Where the cpuset has shrunk meanwhile, the thread stays where it is.
  if (!cores.empty()) set_thread_cpus(cores);
}

void move_this_thread_to(int core) noexcept {
  cpu_set_t allowed;
  if (pthread_getaffinity_np(pthread_self(), sizeof(allowed), &allowed) != 0) return;
  if (core >= CPU_SETSIZE || !CPU_ISSET(core, &allowed)) return;
  cpu_set_t one;
  CPU_ZERO(&one);
  CPU_SET(core, &one);
  if (pthread_setaffinity_np(pthread_self(), sizeof(one), &one) != 0) return;
  pthread_setaffinity_np(pthread_self(), sizeof(allowed), &allowed);
}

}  // namespace ropewalk::os
