#include "memory/numa_placement.hpp"

#include <algorithm>
#include <cerrno>
#include <optional>
#include <span>

#include "os/file.hpp"
#include "os/mapping.hpp"
#include "os/numa.hpp"
#include "os/pagemap.hpp"
#include "topology/numa_nodes.hpp"

namespace ropewalk::memory {
namespace {

using topology::NumaNode;

bool contains(const std::vector<int>& nodes, int node) {
  return std::find(nodes.begin(), nodes.end(), node) != nodes.end();
}

std::string join(const std::vector<int>& nodes) {
  std::string text;
  for (const int node : nodes) text += (text.empty() ? "" : ", ") + std::to_string(node);
  return text;
}

// Returns "0 (ddr, 24109 MiB)" of each node.
std::string describe(std::span<const NumaNode> nodes) {
  std::string text;
  for (const NumaNode& node : nodes) {
    const auto kind = topology::kind_of(node, nodes);
    text += (text.empty() ? "" : ", ") + std::to_string(node.number) + " (" +
            (kind ? name(*kind) : "memory only, of unknown speed") + ", " +
            std::to_string(node.bytes / os::mib) + " MiB)";
  }
  return text.empty() ? "none that sysfs shows" : text;
}

[[noreturn]] void refuse(const std::string& argument, const std::string& found,
                         std::span<const NumaNode> nodes) {
  throw Error(ErrorCode::argument, argument + ": found " + found +
                                       ", expected one of the NUMA nodes of this machine: " +
                                       describe(nodes) + "; pass one of these, or none");
}

std::vector<int> nodes_of_kind(MemoryKind kind, std::span<const NumaNode> all) {
  std::vector<int> found;
  for (const NumaNode& node : all) {
    if (node.bytes > 0 && topology::kind_of(node, all) == kind) found.push_back(node.number);
  }
  return found;
}

std::string explain_binding(int error, bool several) {
  std::string text = "mbind: " + os::error_text(error);
  if (error == EPERM) return text + "; let the container do it: `--cap-add SYS_NICE`";
  if (error == ENOSYS) return text + "; this kernel knows no NUMA nodes";
  if (error == EINVAL && several) return text + "; several nodes need Linux 5.15: pass one `node`";
  return text;
}

std::size_t sum_of(const std::vector<std::size_t>& bytes) {
  std::size_t sum = 0;
  for (const std::size_t one : bytes) sum += one;
  return sum;
}

// Returns the bytes of the range on each node; empty where the kernel does not tell.
std::vector<std::size_t> look(const void* address, std::size_t bytes) {
  const auto runs = os::scan_pages(address, bytes);
  return os::bytes_by_node(runs ? *runs : os::present_pages(address, bytes));
}

std::size_t bytes_elsewhere(const std::vector<std::size_t>& by_node,
                            const std::vector<int>& wanted) {
  std::size_t elsewhere = sum_of(by_node);
  for (const int node : wanted) {
    const auto at = static_cast<std::size_t>(node);
    if (at < by_node.size()) elsewhere -= by_node[at];
  }
  return elsewhere;
}

std::string explain_room(const std::vector<int>& wanted) {
  std::string text;
  for (const NumaNode& node : topology::numa_nodes()) {
    if (!contains(wanted, node.number)) continue;
    text += "; node " + std::to_string(node.number) + " has " +
            std::to_string(node.free_bytes / os::mib) + " of " +
            std::to_string(node.bytes / os::mib) + " MiB free";
  }
  return text;
}

}  // namespace

NumaPlacement::NumaPlacement(const MemoryOptions& options, const char* argument) {
  if (!options.node && !options.kind) return;
  const auto all = topology::numa_nodes();
  const std::string named = argument != nullptr ? argument : options.node ? "node" : "kind";
  if (options.node && options.kind) {
    refuse(named, std::to_string(*options.node) + " and a kind, " + name(*options.kind), all);
  }
  if (options.node) {
    const auto is_it = [&](const NumaNode& one) { return one.number == *options.node; };
    const auto found = std::find_if(all.begin(), all.end(), is_it);
    if (found == all.end()) refuse(named, std::to_string(*options.node), all);
    if (found->bytes == 0) refuse(named, std::to_string(*options.node) + " without memory", all);
    nodes_ = {*options.node};
    name_ = "NUMA node " + std::to_string(*options.node);
  } else {
    nodes_ = nodes_of_kind(*options.kind, all);
    if (nodes_.empty()) refuse(named, name(*options.kind), all);
    name_ = std::string(name(*options.kind)) + ", NUMA node" + (nodes_.size() > 1 ? "s " : " ") +
            join(nodes_);
  }
  const auto allowed = os::allowed_nodes();
  if (!allowed) return;  // bind() will tell why
  std::erase_if(nodes_, [&](int node) { return !contains(*allowed, node); });
  if (nodes_.empty()) {
    throw Error(ErrorCode::memory, named + ": this process may have no memory of " + name_ +
                                       ", expected one of the nodes " + join(*allowed) +
                                       "; widen the cpuset (cpuset.mems), or pass one of these");
  }
}

std::string NumaPlacement::bind(void* address, std::size_t bytes) const {
  if (anywhere()) return {};
  const int error = os::prefer_nodes(address, bytes, nodes_, false);
  return error == 0 ? std::string() : explain_binding(error, nodes_.size() > 1);
}

std::string NumaPlacement::verify(void* address, std::size_t bytes) const {
  if (anywhere()) return {};
  std::vector<std::size_t> found = look(address, bytes);
  if (bytes_elsewhere(found, nodes_) > 0) {
    os::prefer_nodes(address, bytes, nodes_, true);  // what could not be moved is seen below
    found = look(address, bytes);
  }
  if (sum_of(found) == 0) {
    return "the kernel does not tell on which NUMA node pages lie (move_pages); let the container "
           "ask: `--cap-add SYS_NICE`";
  }
  const std::size_t elsewhere = bytes_elsewhere(found, nodes_);
  if (elsewhere == 0) return {};
  return std::to_string(elsewhere) + " of " + std::to_string(bytes) + " bytes do not lie on " +
         name_ + explain_room(nodes_);
}

}  // namespace ropewalk::memory
