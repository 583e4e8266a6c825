// What of a machine the measurements of a profile depend on (tuning/profile.hpp), as lines of text
// that people read, and how the machine of a profile differs from this one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ropewalk::topology {

// A line of the signature: `machine.NAME = VALUE` in a profile.
struct MachineFact {
  std::string_view name;  // "machine.cpu"
  std::string value;      // one line, without `#`
};

// The names of a signature, in its order: processor, cores, caches and how many CPUs share each,
// NUMA nodes, kinds of pages, and what of the kernel decides which mechanisms there are.
std::span<const std::string_view> signature_names() noexcept;

// Of the machine that these trees show. What they do not tell is "unknown".
std::vector<MachineFact> signature(const std::string& sysfs, const std::string& procfs);
// Of this machine: read at the first call and kept. Allocates; from any thread.
const std::vector<MachineFact>& signature();
// For tests of ranks that are threads, and so are on one machine: where set, signature() of the
// calling thread. Returns the one before; null is the machine itself.
const std::vector<MachineFact>* replace_signature(const std::vector<MachineFact>*) noexcept;

// How the machine that the text of a profile names differs from `here`: "machine.cpu is A in the
// profile, and B here"; several are joined by semicolons. Empty: in nothing that it names.
std::string difference(std::string_view profile, std::span<const MachineFact> here);

// Why the profile of ROPEWALK_PROFILE is not used on this machine: difference(). Empty: it is used,
// there is none, or ROPEWALK_PROFILE_MACHINE=any says that the machine does not matter. Reads the
// environment.
std::string refusal_of_profile();

}  // namespace ropewalk::topology
