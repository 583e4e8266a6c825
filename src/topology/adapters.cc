#include "topology/adapters.hpp"

#include <algorithm>
#include <filesystem>
#include <set>

#include "os/file.hpp"
#include "topology/numa_nodes.hpp"

namespace ropewalk::topology {
namespace {

namespace files = std::filesystem;

// Calls visit(path) for each entry of a folder; one that is not there has none.
template <class Visit>
void each_entry(const files::path& folder, Visit&& visit) {
  std::error_code error;
  for (const auto& entry : files::directory_iterator(folder, error)) visit(entry.path());
}

// The kernel writes -1 where the firmware does not tell.
void add_node(const files::path& device, std::set<int>& nodes) {
  const auto node = os::read_number((device / "device/numa_node").string());
  if (node) nodes.insert(static_cast<int>(*node));
}

bool is_up(const files::path& interface) {
  const std::string state = os::read_text((interface / "operstate").string()).value_or("");
  return state.starts_with("up");
}

// "4: ACTIVE" is the state of a port with a cable; devices of Slingshot show no ports.
bool is_active(const files::path& adapter) {
  bool any = false;
  bool active = false;
  each_entry(adapter / "ports", [&](const files::path& port) {
    any = true;
    const std::string state = os::read_text((port / "state").string()).value_or("");
    active = active || state.find("ACTIVE") != std::string::npos;
  });
  return active || !any;
}

std::set<int> nodes_of_interfaces(const std::string& root) {
  std::set<int> nodes;
  std::size_t fastest = 0;
  each_entry(files::path(root) / "class/net", [&](const files::path& interface) {
    std::error_code error;
    if (!files::exists(interface / "device", error) || !is_up(interface)) return;
    const std::size_t speed = os::read_number((interface / "speed").string()).value_or(0);
    if (speed == 0 || speed < fastest) return;
    if (speed > fastest) nodes.clear();
    fastest = speed;
    add_node(interface, nodes);
  });
  return nodes;
}

}  // namespace

std::vector<int> adapter_nodes(const std::string& root) {
  std::set<int> nodes;
  bool found = false;
  for (const char* kind : {"infiniband", "cxi"}) {
    each_entry(files::path(root) / "class" / kind, [&](const files::path& adapter) {
      if (!is_active(adapter)) return;
      found = true;
      add_node(adapter, nodes);
    });
  }
  if (!found) nodes = nodes_of_interfaces(root);
  return {nodes.begin(), nodes.end()};
}

std::vector<int> cpus_near_adapters(const std::string& root) {
  const std::vector<int> near = adapter_nodes(root);
  if (near.empty()) return {};
  std::vector<int> cpus;
  for (const NumaNode& node : read_numa_nodes(root)) {
    if (!std::ranges::binary_search(near, node.number)) continue;
    cpus.insert(cpus.end(), node.cpus.begin(), node.cpus.end());
  }
  std::ranges::sort(cpus);
  return cpus;
}

}  // namespace ropewalk::topology
