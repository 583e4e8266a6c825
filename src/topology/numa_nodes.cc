#include "topology/numa_nodes.hpp"

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <utility>

#include "os/affinity.hpp"
#include "os/file.hpp"

namespace ropewalk::topology {
namespace {

namespace files = std::filesystem;

std::size_t read_count(const std::string& path) { return os::read_number(path).value_or(0); }

// A line looks like "Node 0 MemTotal:       24689664 kB".
std::size_t bytes_of(const std::string& meminfo, const std::string& key) {
  const auto at = meminfo.find(" " + key + ":");
  if (at == std::string::npos) return 0;
  return std::strtoull(meminfo.c_str() + at + key.size() + 2, nullptr, 10) * 1024;
}

std::vector<std::string> folders_in(const std::string& path) {
  std::vector<std::string> found;
  std::error_code error;  // a folder that is not there has nothing in it
  for (const auto& entry : files::directory_iterator(path, error)) {
    found.push_back(entry.path().filename().string());
  }
  return found;
}

std::size_t read_memory_side_cache(const std::string& node) {
  const std::string top = node + "/memory_side_cache/";
  std::size_t sum = 0;
  for (const std::string& name : folders_in(top)) sum += read_count(top + name + "/size");
  return sum;
}

NumaNode read_node(const std::string& directory, int number) {
  const std::string meminfo = os::read_text(directory + "/meminfo").value_or("");
  const std::string speeds = directory + "/access0/initiators/";
  NumaNode node{.number = number,
                .bytes = bytes_of(meminfo, "MemTotal"),
                .free_bytes = bytes_of(meminfo, "MemFree"),
                .cpus = os::read_cpu_list(directory + "/cpulist")};
  node.read_mb_per_s = read_count(speeds + "read_bandwidth");
  node.read_latency_ns = read_count(speeds + "read_latency");
  node.memory_side_cache_bytes = read_memory_side_cache(directory);
  return node;
}

// The folder of a tier is called memory_tier4.
void read_tiers(const std::string& root, std::vector<NumaNode>& nodes) {
  const std::string top = root + "/devices/virtual/memory_tiering/";
  const std::string prefix = "memory_tier";
  for (const std::string& name : folders_in(top)) {
    if (name.compare(0, prefix.size(), prefix) != 0) continue;
    const std::vector<int> members = os::read_cpu_list(top + name + "/nodelist");
    for (NumaNode& node : nodes) {
      if (std::find(members.begin(), members.end(), node.number) == members.end()) continue;
      node.tier = std::strtoull(name.c_str() + prefix.size(), nullptr, 10);
    }
  }
}

// Returns how many times the value of nodes with cores; 1 where one is not known.
double compared(const NumaNode& node, std::span<const NumaNode> all, std::size_t NumaNode::*value) {
  std::size_t ordinary = 0;
  for (const NumaNode& other : all) {
    if (!other.cpus.empty()) ordinary = std::max(ordinary, other.*value);
  }
  if (node.*value == 0 || ordinary == 0) return 1;
  return static_cast<double>(node.*value) / static_cast<double>(ordinary);
}

thread_local const std::vector<NumaNode>* replacement = nullptr;

}  // namespace

std::vector<NumaNode> read_numa_nodes(const std::string& root) {
  const std::string top = root + "/devices/system/node";
  std::vector<NumaNode> nodes;
  for (const int number : os::read_cpu_list(top + "/online")) {
    nodes.push_back(read_node(top + "/node" + std::to_string(number), number));
  }
  read_tiers(root, nodes);
  return nodes;
}

std::optional<MemoryKind> kind_of(const NumaNode& node, std::span<const NumaNode> all) {
  if (!node.cpus.empty()) return MemoryKind::ddr;
  const double bandwidth = compared(node, all, &NumaNode::read_mb_per_s);
  const double latency = compared(node, all, &NumaNode::read_latency_ns);
  if (bandwidth > 1) return MemoryKind::hbm;
  if (latency > 1 || bandwidth < 1) return MemoryKind::cxl;
  const double tier = compared(node, all, &NumaNode::tier);
  if (tier == 1) return std::nullopt;
  return tier < 1 ? MemoryKind::hbm : MemoryKind::cxl;
}

std::vector<NumaNode> numa_nodes() {
  return replacement != nullptr ? *replacement : read_numa_nodes();
}

const std::vector<NumaNode>* replace_numa_nodes(const std::vector<NumaNode>* nodes) noexcept {
  return std::exchange(replacement, nodes);
}

}  // namespace ropewalk::topology
