#include "os/hugepool.hpp"

#include <algorithm>
#include <cstdlib>
#include <string_view>

#include "os/file.hpp"
#include "os/mapping.hpp"

namespace ropewalk::os {
namespace {

// Takes the first line off `text`. It uses no streams, since this file is part of libraries that
// are preloaded into foreign programs.
std::string take_line(std::string_view& text) {
  const std::size_t end = std::min(text.find('\n'), text.size());
  std::string line(text.substr(0, end));
  text.remove_prefix(std::min(end + 1, text.size()));
  return line;
}

// Finds the value of a "Key: N kB" or "key N" line, in the unit of the file.
std::optional<std::uint64_t> find_value(const std::string& text, const std::string& key) {
  for (std::string_view rest = text; !rest.empty();) {
    const std::string line = take_line(rest);
    if (line.compare(0, key.size(), key) != 0 || line.size() == key.size()) continue;
    const char next = line[key.size()];
    if (next != ':' && next != ' ') continue;
    return std::strtoull(line.c_str() + key.size() + 1, nullptr, 10);
  }
  return std::nullopt;
}

struct CgroupFiles {
  const char* limit;
  const char* usage;
  const char* reclaimable;  // key of memory.stat: page cache the kernel drops before it kills
};
constexpr CgroupFiles version_1{"memory.limit_in_bytes", "memory.usage_in_bytes",
                                "total_inactive_file"};
constexpr CgroupFiles version_2{"memory.max", "memory.current", "inactive_file"};

void apply_directory(const std::string& directory, const CgroupFiles& files, MemoryLimit& room,
                     std::uint64_t& least_limit) {
  const auto limit = read_number(directory + "/" + files.limit);
  const auto usage = read_number(directory + "/" + files.usage);
  if (!limit || !usage) return;
  const auto stat = read_text(directory + "/memory.stat");
  const auto cached = stat ? find_value(*stat, files.reclaimable).value_or(0) : 0;
  const std::uint64_t used = *usage - std::min(*usage, cached);
  const std::uint64_t left = *limit - std::min(*limit, used);
  if (left < room.bytes) room = {left, "memory limit of cgroup " + directory};
  least_limit = std::min(least_limit, *limit);
}

// Visits this process's directory in the hierarchy, and all above it.
void apply_cgroups(MemoryLimit& room, std::uint64_t& least_limit) {
  const auto text = read_text("/proc/self/cgroup");
  if (!text) return;
  for (std::string_view rest = *text; !rest.empty();) {
    const std::string line = take_line(rest);
    const auto first = line.find(':');
    const auto second = line.find(':', first + 1);
    if (first == std::string::npos || second == std::string::npos) continue;
    const std::string controllers = "," + line.substr(first + 1, second - first - 1) + ",";
    const bool unified = controllers == ",,";
    if (!unified && controllers.find(",memory,") == std::string::npos) continue;
    const std::string top = unified ? "/sys/fs/cgroup" : "/sys/fs/cgroup/memory";
    std::string path = line.substr(second + 1);
    while (true) {
      apply_directory(top + path, unified ? version_2 : version_1, room, least_limit);
      if (path.empty() || path == "/") break;
      path.erase(path.rfind('/'));
    }
  }
}

}  // namespace

std::optional<HugePool> read_huge_pool(std::size_t page_bytes, const std::string& root) {
  const std::string directory =
      root + "/kernel/mm/hugepages/hugepages-" + std::to_string(page_bytes / kib) + "kB/";
  const auto total = read_number(directory + "nr_hugepages");
  if (!total) return std::nullopt;
  const auto read = [&](const char* name) { return read_number(directory + name).value_or(0); };
  return HugePool{page_bytes,
                  *total,
                  read("free_hugepages"),
                  read("resv_hugepages"),
                  read("surplus_hugepages"),
                  read("nr_overcommit_hugepages")};
}

MemoryLimit available_memory() {
  MemoryLimit room;
  std::uint64_t least_limit = UINT64_MAX;
  if (const auto text = read_text("/proc/meminfo")) {
    if (const auto value = find_value(*text, "MemAvailable")) {
      room = {*value * kib, "memory available on this machine"};
    }
  }
  apply_cgroups(room, least_limit);
  return room;
}

std::uint64_t total_memory_bytes() {
  std::uint64_t bytes = gib;  // where /proc is not mounted
  if (const auto text = read_text("/proc/meminfo")) {
    if (const auto value = find_value(*text, "MemTotal")) bytes = *value * kib;
  }
  MemoryLimit room;
  std::uint64_t least_limit = UINT64_MAX;
  apply_cgroups(room, least_limit);
  return std::min(bytes, least_limit);
}

}  // namespace ropewalk::os
