// The signature of a machine lists, as lines of text for people, what the measurements of a profile
// (tuning/profile.hpp) depend on. Here is how it is read, and how the machine that a profile names
// is compared with this one.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace ropewalk::topology {

// A MachineFact is one line of the signature; a profile has it as `machine.NAME = VALUE`.
struct MachineFact {
  std::string_view name;  // "machine.cpu"
  std::string value;      // one line, without `#`
};

// Returns the names of a signature, in its order. They stand for the processor, the cores, the
// caches with the number of CPUs that share each, the NUMA nodes, the kinds of pages, and those
// properties of the kernel that decide which mechanisms are available.
std::span<const std::string_view> signature_names() noexcept;

// Returns the signature of the machine that is described by the folders `sysfs` and `procfs`. A
// fact that they do not contain has the value "unknown".
std::vector<MachineFact> signature(const std::string& sysfs, const std::string& procfs);
// Returns the signature of this machine, which is read at the first call and kept. The first call
// allocates. May be called from any thread.
const std::vector<MachineFact>& signature();
// Makes signature() return these facts on the calling thread, or the real machine's where null is
// given, and returns the pointer that was set before. It serves tests whose ranks are threads, and
// therefore all run on one machine. The facts must outlive their use.
const std::vector<MachineFact>* replace_signature(const std::vector<MachineFact>*) noexcept;

// Returns how the machine that the text of a profile names differs from `here`, such as
// "machine.cpu is A in the profile, and B here". Several differences are joined by semicolons. The
// text is empty where all facts that the profile names are the same.
std::string difference(std::string_view profile, std::span<const MachineFact> here);

// Returns why the profile of ROPEWALK_PROFILE is not used on this machine, as difference() says it.
// The text is empty where the profile is used, where there is none, and where
// ROPEWALK_PROFILE_MACHINE=any says that the machine does not matter. Reads the environment.
std::string refusal_of_profile();

}  // namespace ropewalk::topology
