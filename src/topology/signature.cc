#include "topology/signature.hpp"

#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <map>
#include <utility>

#include "os/file.hpp"
#include "settings/contents.hpp"
#include "settings/value.hpp"
#include "topology/machine.hpp"

namespace ropewalk::topology {
namespace {

constexpr std::string_view prefix = "machine.";
constexpr std::array<std::string_view, 6> names = {"machine.cpu",    "machine.cores",
                                                   "machine.caches", "machine.numa",
                                                   "machine.pages",  "machine.kernel"};
constexpr std::string_view blanks = " \t\r";

thread_local const std::vector<MachineFact>* pretended = nullptr;

std::string_view trimmed(std::string_view text) {
  const std::size_t begin = text.find_first_not_of(blanks);
  if (begin == std::string_view::npos) return {};
  return text.substr(begin, text.find_last_not_of(blanks) - begin + 1);
}

// Returns the text after the colon in the line in which `key` occurs first.
std::string field(std::string_view text, std::string_view key) {
  const std::size_t at = text.find(key);
  if (at == std::string_view::npos) return "";
  const std::string_view line = text.substr(at, text.find('\n', at) - at);
  const std::size_t colon = line.find(':');
  return colon == std::string_view::npos ? "" : std::string(trimmed(line.substr(colon + 1)));
}

// Returns the text as one line without `#`, which would begin a comment in a profile.
std::string one_line(std::string text) {
  std::ranges::replace_if(
      text, [](char letter) { return letter == '#' || letter == '\n'; }, ' ');
  const std::string_view kept = trimmed(text);
  return kept.empty() ? "unknown" : std::string(kept);
}

// Returns the name of the processor. On Arm /proc/cpuinfo has numbers in place of a name.
std::string processor(const std::string& procfs) {
  const std::string text = os::read_text(procfs + "/cpuinfo").value_or("");
  std::string model = field(text, "model name");
  if (!model.empty()) return model;
  const std::string maker = field(text, "CPU implementer");
  return maker.empty() ? "" : maker + " " + field(text, "CPU part");
}

std::string cores(const Machine& machine) {
  return std::to_string(machine.cores.size()) + ", of " + std::to_string(machine.cpus.size()) +
         " CPUs";
}

// Returns the data caches, such as "L1 32K for 1, L2 1024K for 2", where the last number of each is
// how many CPUs share it. Equal caches of a level become one entry.
std::string caches(const Machine& machine) {
  std::string all;
  std::string last;
  for (const Cache& cache : machine.caches) {
    if (cache.type == "Instruction") continue;
    const std::string one = "L" + std::to_string(cache.level) + " " +
                            std::to_string(cache.bytes >> 10) + "K for " +
                            std::to_string(cache.cpus.size());
    if (one == last) continue;
    all += (all.empty() ? "" : ", ") + one;
    last = one;
  }
  return all;
}

// Returns how many NUMA nodes there are, and how many CPUs each has.
std::string numa(const Machine& machine) {
  std::map<std::size_t, int> nodes_with;
  for (const NumaNode& node : machine.nodes) ++nodes_with[node.cpus.size()];
  std::string all;
  for (const auto& [cpus, nodes] : nodes_with) {
    all +=
        (all.empty() ? "" : ", ") + std::to_string(nodes) + " of " + std::to_string(cpus) + " CPUs";
  }
  return all;
}

// Returns the word in brackets: "madvise" for a file with "always [madvise] never".
std::string chosen(const std::string& path) {
  const std::string text = os::read_text(path).value_or("");
  const std::size_t open = text.find('[');
  const std::size_t close = text.find(']');
  if (open == std::string::npos || close == std::string::npos) return "unknown";
  return text.substr(open + 1, close - open - 1);
}

std::string pages(const std::string& sysfs) {
  const std::string huge = sysfs + "/kernel/mm/transparent_hugepage/";
  return std::to_string(sysconf(_SC_PAGESIZE) >> 10) + "K, huge " + chosen(huge + "enabled") +
         ", shared " + chosen(huge + "shmem_enabled");
}

// Returns the properties of the kernel that measurements depend on. MADV_COLLAPSE came with Linux
// 6.1 and gives shared memory pages of 2 MiB whatever the kernel's settings are. ptrace_scope
// decides whether ranks may read each other's memory. The version itself is left out, because it
// changes with every update and no measurement depends on it.
std::string kernel(const std::string& procfs) {
  const std::string version = os::read_text(procfs + "/sys/kernel/osrelease").value_or("0.0");
  int major = 0;
  int minor = 0;
  std::sscanf(version.c_str(), "%d.%d", &major, &minor);
  const bool collapses = major > 6 || (major == 6 && minor >= 1);
  const std::string scope =
      os::read_text(procfs + "/sys/kernel/yama/ptrace_scope").value_or("none");
  return std::string(collapses ? "6.1 or later" : "before 6.1") + ", ptrace_scope " + scope;
}

// Calls `see` with name and value of each line that has both.
template <class See>
void each_line(std::string_view text, See see) {
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size());
    std::string_view line = text.substr(0, end);
    line = line.substr(0, line.find('#'));
    const std::size_t equals = line.find('=');
    if (equals != std::string_view::npos) {
      see(trimmed(line.substr(0, equals)), trimmed(line.substr(equals + 1)));
    }
    text.remove_prefix(std::min(end + 1, text.size()));
  }
}

}  // namespace

std::span<const std::string_view> signature_names() noexcept { return names; }

std::vector<MachineFact> signature(const std::string& sysfs, const std::string& procfs) {
  const Machine machine = read_machine(sysfs);
  const std::array<std::string, names.size()> values = {processor(procfs), cores(machine),
                                                        caches(machine),   numa(machine),
                                                        pages(sysfs),      kernel(procfs)};
  std::vector<MachineFact> all;
  for (std::size_t i = 0; i < names.size(); ++i) all.push_back({names[i], one_line(values[i])});
  return all;
}

const std::vector<MachineFact>& signature() {
  if (pretended != nullptr) return *pretended;
  static const std::vector<MachineFact> here = signature("/sys", "/proc");
  return here;
}

const std::vector<MachineFact>* replace_signature(const std::vector<MachineFact>* other) noexcept {
  return std::exchange(pretended, other);
}

std::string difference(std::string_view profile, std::span<const MachineFact> here) {
  std::string all;
  each_line(profile, [&](std::string_view name, std::string_view value) {
    if (!name.starts_with(prefix)) return;
    const auto fact = std::ranges::find(here, name, &MachineFact::name);
    if (fact == here.end() || fact->value == value) return;
    all += (all.empty() ? "" : "; ") + std::string(name) + " is \"" + std::string(value) +
           "\" in the profile, and \"" + fact->value + "\" here";
  });
  return all;
}

std::string refusal_of_profile() {
  const settings::Value file = settings::read(settings::Id::profile);
  if (!file.given || settings::get(settings::Id::profile_machine).is("any")) return "";
  return difference(settings::contents(file.text).text, signature());
}

}  // namespace ropewalk::topology
