// This file counts CPUs by the affinity mask and by the quota of cgroups, versions 1 and 2.
#include <algorithm>
#include <cmath>
#include <cstdlib>
#include <sstream>

#include "os/affinity.hpp"
#include "os/file.hpp"
#include "topology/machine.hpp"

namespace ropewalk::topology {
namespace {

// Version 2 writes "max 100000" or "150000 100000": microseconds of CPU time in a period.
std::optional<double> quota_of_version_2(const std::string& directory) {
  const auto text = os::read_text(directory + "/cpu.max");
  if (!text) return std::nullopt;
  std::istringstream fields(*text);
  double quota = 0;
  double period = 0;
  if (!(fields >> quota >> period) || quota <= 0 || period <= 0) return std::nullopt;
  return quota / period;
}

std::optional<double> quota_of_version_1(const std::string& directory) {
  const auto quota = os::read_text(directory + "/cpu.cfs_quota_us");  // -1: unlimited
  const auto period = os::read_number(directory + "/cpu.cfs_period_us");
  if (!quota || !period || *period == 0) return std::nullopt;
  const long long value = std::strtoll(quota->c_str(), nullptr, 10);
  if (value <= 0) return std::nullopt;
  return static_cast<double>(value) / static_cast<double>(*period);
}

using QuotaOf = std::optional<double> (*)(const std::string& directory);

std::optional<double> least_quota(const std::string& top, std::string path, QuotaOf quota_of) {
  std::optional<double> least;
  while (true) {
    const auto found = quota_of(top + path);
    if (found && (!least || *found < *least)) least = found;
    const auto slash = path.rfind('/');
    if (path.empty() || slash == std::string::npos) return least;
    path.erase(slash);
  }
}

}  // namespace

std::optional<double> cpu_quota(const std::string& mount, const std::string& membership) {
  std::optional<double> least;
  std::istringstream lines(membership);
  std::string line;
  while (std::getline(lines, line)) {
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const std::string path = line.substr(second + 1);
    std::optional<double> found;
    if (controllers == ",,") {
      found = least_quota(mount, path, quota_of_version_2);
    } else if (controllers.find(",cpu,") != std::string::npos) {
      found = least_quota(mount + "/cpu", path, quota_of_version_1);
    }
    if (found && (!least || *found < *least)) least = found;
  }
  return least;
}

int UsableCpus::count() const noexcept {
  int threads = std::max<int>(1, static_cast<int>(cpus.size()));
  if (quota) threads = std::min(threads, std::max(1, static_cast<int>(std::ceil(*quota))));
  return threads;
}

// The quota is read once: that opens some ten files, which would be a quarter of the time that a
// team of two ranks takes to be made.
UsableCpus usable_cpus() {
  static const std::optional<double> quota =
      cpu_quota("/sys/fs/cgroup", os::read_text("/proc/self/cgroup").value_or(""));
  return {os::thread_cpus(), quota};
}

}  // namespace ropewalk::topology
