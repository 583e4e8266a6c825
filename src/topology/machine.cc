#include "topology/machine.hpp"

#include <algorithm>
#include <tuple>

#include "os/affinity.hpp"
#include "os/file.hpp"

namespace ropewalk::topology {
namespace {

int read_int(const std::string& path, int otherwise) {
  const auto value = os::read_number(path);  // core_id can be -1 in virtual machines
  return value ? static_cast<int>(*value) : otherwise;
}

// Sysfs writes cache sizes as "48K" or "32M".
std::size_t cache_bytes(const std::string& path) {
  const auto text = os::read_text(path);
  if (!text || text->empty()) return 0;
  const std::size_t count = std::strtoull(text->c_str(), nullptr, 10);
  switch (text->back()) {
    case 'K':
      return count << 10;
    case 'M':
      return count << 20;
    case 'G':
      return count << 30;
    default:
      return count;
  }
}

std::string cpu_directory(const std::string& root, int cpu) {
  return root + "/devices/system/cpu/cpu" + std::to_string(cpu);
}

bool contains(const std::vector<int>& cpus, int cpu) {
  return std::find(cpus.begin(), cpus.end(), cpu) != cpus.end();
}

std::vector<int> online_cpus(const std::string& root) {
  std::vector<int> cpus = os::read_cpu_list(root + "/devices/system/cpu/online");
  return cpus.empty() ? os::thread_cpus() : cpus;
}

void keep_online(std::vector<int>& cpus, const std::vector<int>& online) {
  cpus.erase(
      std::remove_if(cpus.begin(), cpus.end(), [&](int cpu) { return !contains(online, cpu); }),
      cpus.end());
}

Core read_core(const std::string& root, int cpu, const std::vector<int>& online) {
  const std::string directory = cpu_directory(root, cpu) + "/topology/";
  Core core{read_int(directory + "physical_package_id", 0), read_int(directory + "core_id", cpu),
            os::read_cpu_list(directory + "thread_siblings_list")};
  keep_online(core.cpus, online);
  if (!contains(core.cpus, cpu)) core.cpus = {cpu};
  return core;
}

void read_cores(const std::string& root, Machine& machine) {
  for (const int cpu : machine.cpus) {
    if (machine.core_of(cpu) == nullptr) {
      machine.cores.push_back(read_core(root, cpu, machine.cpus));
    }
  }
}

void read_caches_of(const std::string& root, int cpu, Machine& machine) {
  for (int index = 0;; ++index) {
    const std::string directory =
        cpu_directory(root, cpu) + "/cache/index" + std::to_string(index) + "/";
    const auto type = os::read_text(directory + "type");
    if (!type) return;
    Cache cache{read_int(directory + "level", 0), *type, cache_bytes(directory + "size"),
                cache_bytes(directory + "coherency_line_size"),
                os::read_cpu_list(directory + "shared_cpu_list")};
    keep_online(cache.cpus, machine.cpus);
    if (!contains(cache.cpus, cpu)) cache.cpus = {cpu};
    if (cache.cpus.front() == cpu) machine.caches.push_back(std::move(cache));
  }
}

void read_caches(const std::string& root, Machine& machine) {
  for (const int cpu : machine.cpus) read_caches_of(root, cpu, machine);
  std::sort(machine.caches.begin(), machine.caches.end(), [](const Cache& a, const Cache& b) {
    return std::tie(a.level, a.type, a.cpus) < std::tie(b.level, b.type, b.cpus);
  });
}

void read_nodes(const std::string& root, Machine& machine) {
  machine.nodes = read_numa_nodes(root);
  for (NumaNode& node : machine.nodes) keep_online(node.cpus, machine.cpus);
  if (machine.nodes.empty()) machine.nodes.push_back({.cpus = machine.cpus});
}

}  // namespace

const Core* Machine::core_of(int cpu) const {
  for (const Core& core : cores) {
    if (contains(core.cpus, cpu)) return &core;
  }
  return nullptr;
}

const NumaNode* Machine::node_of(int cpu) const {
  for (const NumaNode& node : nodes) {
    if (contains(node.cpus, cpu)) return &node;
  }
  return nullptr;
}

std::size_t Machine::cache_bytes(int level, int cpu) const {
  for (const Cache& cache : caches) {
    if (cache.level == level && cache.type != "Instruction" && contains(cache.cpus, cpu)) {
      return cache.bytes;
    }
  }
  return 0;
}

std::size_t Machine::last_level_cache_bytes(int cpu) const {
  std::size_t bytes = 0;
  for (const Cache& cache : caches) {  // by level: the last one found is the outermost
    if (cache.type != "Instruction" && contains(cache.cpus, cpu)) bytes = cache.bytes;
  }
  return bytes;
}

Machine read_machine(const std::string& root) {
  Machine machine;
  machine.cpus = online_cpus(root);
  read_cores(root, machine);
  read_caches(root, machine);
  read_nodes(root, machine);
  return machine;
}

}  // namespace ropewalk::topology
