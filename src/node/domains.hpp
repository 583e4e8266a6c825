// Which ranks of a node are near each other: those that share the outermost cache, or where the
// machine does not tell its caches, a NUMA node.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace ropewalk::node {

struct Domains {
  std::vector<std::vector<int>> members;  // ranks, ascending; domains by their lowest rank
  std::vector<int> of;                    // the domain of each rank
  bool contiguous = true;                 // every domain is a range of ranks

  int count() const noexcept { return static_cast<int>(members.size()); }
};

constexpr std::int64_t no_domain = -1;  // of a rank that may run in several

// Ranks of the same number share a domain. Where any rank has none, all share one domain, since
// that rank may run elsewhere in the next call.
Domains group_by(std::span<const std::int64_t> numbers);

// Returns the number of the domain that the CPUs of this process lie in. ROPEWALK_DOMAINS overrules
// it: "off", or how many consecutive ranks share one. Throws Error(argument) for any other text but
// "auto".
std::int64_t own_domain(int rank);

}  // namespace ropewalk::node
