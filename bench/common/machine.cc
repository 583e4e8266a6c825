// Facts of the machine from /proc and /sys; see machine.hpp. What the kernel does not tell is left
// out.
#include "common/machine.hpp"

#include <fmt/format.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>

#include "common/commit.hpp"
#include "common/parse.hpp"
#include "common/scheduling.hpp"

namespace ropewalk::bench {
namespace {

std::string first_line(const std::string& path) {
  std::ifstream file(path);
  std::string text;
  std::getline(file, text);
  return text;
}

// Finds the value behind "key" and a colon, in files like /proc/cpuinfo and /proc/meminfo.
std::string field(const std::string& path, const std::string& key) {
  std::ifstream file(path);
  for (std::string text; std::getline(file, text);) {
    if (text.compare(0, key.size(), key) != 0) continue;
    const std::size_t colon = text.find(':');
    if (colon == std::string::npos) continue;
    const std::size_t begin = text.find_first_not_of(" \t", colon + 1);
    return begin == std::string::npos ? "" : text.substr(begin);
  }
  return "";
}

std::size_t kibibytes(const std::string& text) {
  return std::strtoull(text.c_str(), nullptr, 10) << 10;
}

// Returns "madvise" from "always [madvise] never".
std::string chosen(const std::string& text) {
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']');
  if (open == std::string::npos || close == std::string::npos) return text;
  return text.substr(open + 1, close - open - 1);
}

Json pages_json() {
  const std::string thp = "/sys/kernel/mm/transparent_hugepage/";
  const std::string pool = "/sys/kernel/mm/hugepages/hugepages-2048kB/";
  return {{"base", sysconf(_SC_PAGESIZE)},
          {"thp", chosen(first_line(thp + "enabled"))},
          {"shmem", chosen(first_line(thp + "shmem_enabled"))},
          {"hugetlb_2m", first_line(pool + "nr_hugepages")},
          {"hugetlb_2m_free", first_line(pool + "free_hugepages")}};
}

std::string cpu_model() {
  const std::string model = field("/proc/cpuinfo", "model name");
  return model.empty() ? field("/proc/cpuinfo", "Processor") : model;
}

}  // namespace

std::vector<CoreCache> caches(const std::string& root) {
  std::vector<CoreCache> found;
  for (int index = 0; index < 16; ++index) {
    const std::string folder = fmt::format("{}/index{}/", root, index);
    const std::string type = first_line(folder + "type");
    if (type.empty()) break;
    if (type == "Instruction") continue;
    found.push_back({std::atoi(first_line(folder + "level").c_str()), type,
                     kibibytes(first_line(folder + "size")),  // "32768K"
                     first_line(folder + "shared_cpu_list")});
  }
  std::sort(found.begin(), found.end(),
            [](const CoreCache& a, const CoreCache& b) { return a.bytes < b.bytes; });
  return found;
}

std::size_t last_level_bytes() {
  const std::vector<CoreCache> found = caches();
  return found.empty() ? std::size_t{32} << 20 : found.back().bytes;
}

std::size_t available_memory() { return kibibytes(field("/proc/meminfo", "MemAvailable")); }

std::string commit() { return ROPEWALK_COMMIT; }

Json machine_line(const std::string& program, const std::string& command) {
  utsname system = {};
  uname(&system);
  Json cache_list = Json::array();
  for (const CoreCache& cache : caches()) {
    cache_list.push_back({{"level", cache.level},
                          {"type", cache.type},
                          {"bytes", cache.bytes},
                          {"shared_by", cache.shared_by}});
  }
  return {{"bench", "machine"},
          {"host", system.nodename},
          {"kernel", fmt::format("{} {}", system.sysname, system.release)},
          {"architecture", system.machine},
          {"cpu", cpu_model()},
          {"cores", sysconf(_SC_NPROCESSORS_ONLN)},
          {"allowed_cores", allowed_cores()},
          {"caches", cache_list},
          {"memory_bytes", kibibytes(field("/proc/meminfo", "MemTotal"))},
          {"pages", pages_json()},
          {"commit", commit()},
          {"program", program},
          {"command", command}};
}

std::string machine_text(const Json& machine) {
  std::string text =
      fmt::format("{}, {} cores", machine.value("cpu", "unknown CPU"), machine.value("cores", 0));
  for (const Json& cache : machine.value("caches", Json::array())) {
    text += fmt::format(", L{} {}", cache.value("level", 0),
                        size_text(cache.value("bytes", std::size_t{0})));
  }
  const Json pages = machine.value("pages", Json::object());
  return text + fmt::format(", {}; THP {}, shmem {}, hugetlb pool {} free of {}",
                            machine.value("kernel", ""), pages.value("thp", "?"),
                            pages.value("shmem", "?"), pages.value("hugetlb_2m_free", "?"),
                            pages.value("hugetlb_2m", "?"));
}

}  // namespace ropewalk::bench
