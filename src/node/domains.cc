#include "node/domains.hpp"

#include <algorithm>

#include "os/affinity.hpp"
#include "settings/value.hpp"
#include "topology/machine.hpp"

namespace ropewalk::node {
namespace {

bool has(const std::vector<int>& cpus, int cpu) { return std::ranges::count(cpus, cpu) > 0; }

// Returns the number of the set that holds all CPUs, which is its lowest CPU; no_domain where
// several sets hold them.
std::int64_t common(const std::vector<const std::vector<int>*>& sets,
                    const std::vector<int>& cpus) {
  for (const std::vector<int>* set : sets) {
    if (std::ranges::all_of(cpus, [&](int cpu) { return has(*set, cpu); })) return set->front();
  }
  return no_domain;
}

std::int64_t domain_of(const topology::Machine& machine, const std::vector<int>& cpus) {
  int outermost = 0;
  for (const topology::Cache& cache : machine.caches) outermost = std::max(outermost, cache.level);
  std::vector<const std::vector<int>*> sets;
  for (const topology::Cache& cache : machine.caches) {
    if (cache.level == outermost && !cache.cpus.empty()) sets.push_back(&cache.cpus);
  }
  for (const topology::NumaNode& node : machine.nodes) {
    if (outermost == 0 && !node.cpus.empty()) sets.push_back(&node.cpus);
  }
  return common(sets, cpus);
}

std::int64_t from_machine() {
  // It is read once, because it is a walk over sysfs, in a call that every communicator makes.
  static const topology::Machine machine = topology::read_machine();
  return domain_of(machine, os::thread_cpus());
}

}  // namespace

Domains group_by(std::span<const std::int64_t> numbers) {
  const bool known = std::ranges::count(numbers, no_domain) == 0;
  Domains domains;
  std::vector<std::int64_t> seen;
  for (std::size_t rank = 0; rank < numbers.size(); ++rank) {
    const std::int64_t number = known ? numbers[rank] : 0;
    const auto at = static_cast<std::size_t>(std::ranges::find(seen, number) - seen.begin());
    if (at == seen.size()) {
      seen.push_back(number);
      domains.members.emplace_back();
    }
    std::vector<int>& members = domains.members[at];
    if (!members.empty() && members.back() + 1 != static_cast<int>(rank)) {
      domains.contiguous = false;
    }
    members.push_back(static_cast<int>(rank));
    domains.of.push_back(static_cast<int>(at));
  }
  return domains;
}

std::int64_t own_domain(int rank) {
  const settings::Value value = settings::get(settings::Id::domains);
  if (value.is("auto")) return from_machine();
  return value.is("off") ? no_domain : rank / value.number;
}

}  // namespace ropewalk::node
