#include "os/affinity.hpp"

#include <sched.h>

#include <algorithm>
#include <cerrno>
#include <cstdlib>
#include <memory>

#include "os/file.hpp"

namespace ropewalk::os {
namespace {

constexpr int most_cpus = 16384;  // above NR_CPUS of any distribution's kernel (8192)

struct FreeSet {
  void operator()(cpu_set_t* set) const noexcept { CPU_FREE(set); }
};
using CpuSet = std::unique_ptr<cpu_set_t, FreeSet>;

CpuSet make_set(const std::vector<int>& cpus) noexcept {
  CpuSet set(CPU_ALLOC(most_cpus));
  if (!set) return set;
  CPU_ZERO_S(CPU_ALLOC_SIZE(most_cpus), set.get());
  for (const int cpu : cpus) {
    if (cpu >= 0 && cpu < most_cpus) CPU_SET_S(cpu, CPU_ALLOC_SIZE(most_cpus), set.get());
  }
  return set;
}

}  // namespace

std::vector<int> thread_cpus(pid_t thread) {
  const CpuSet set = make_set({});
  std::vector<int> cpus;
  if (!set || sched_getaffinity(thread, CPU_ALLOC_SIZE(most_cpus), set.get()) != 0) return cpus;
  int left = CPU_COUNT_S(CPU_ALLOC_SIZE(most_cpus), set.get());
  for (int cpu = 0; left > 0; ++cpu) {
    if (!CPU_ISSET_S(cpu, CPU_ALLOC_SIZE(most_cpus), set.get())) continue;
    cpus.push_back(cpu);
    --left;
  }
  return cpus;
}

int set_thread_cpus(const std::vector<int>& cpus, pid_t thread) noexcept {
  const CpuSet set = make_set(cpus);
  if (!set) return ENOMEM;
  return sched_setaffinity(thread, CPU_ALLOC_SIZE(most_cpus), set.get()) == 0 ? 0 : errno;
}

int set_thread_cpus(pthread_t thread, const std::vector<int>& cpus) noexcept {
  const CpuSet set = make_set(cpus);
  if (!set) return ENOMEM;
  return pthread_setaffinity_np(thread, CPU_ALLOC_SIZE(most_cpus), set.get());
}

int current_cpu() noexcept { return sched_getcpu(); }

std::vector<int> parse_cpu_list(const std::string& text) {
  std::vector<int> cpus;
  const char* at = text.c_str();
  while (*at != '\0') {
    char* after = nullptr;
    const long first = std::strtol(at, &after, 10);
    if (after == at) {
      ++at;  // a separator
      continue;
    }
    long last = first;
    at = after;
    if (*at == '-') last = std::strtol(at + 1, &after, 10);
    at = after;
    for (long cpu = first; cpu <= std::min<long>(last, most_cpus); ++cpu) {
      cpus.push_back(static_cast<int>(cpu));
    }
  }
  return cpus;
}

std::vector<int> read_cpu_list(const std::string& path) {
  const auto text = read_text(path);
  return text ? parse_cpu_list(*text) : std::vector<int>{};
}

}  // namespace ropewalk::os
