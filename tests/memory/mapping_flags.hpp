// What the kernel says of a mapping.
#pragma once

#include <cstdint>
#include <cstdio>
#include <fstream>
#include <string>

namespace ropewalk::test {

// Returns the flags of the mapping that an address lies in, as /proc/self/smaps shows them.
inline std::string flags_of(const void* address) {
  std::ifstream maps("/proc/self/smaps");
  bool inside = false;
  for (std::string line; std::getline(maps, line);) {
    std::uintptr_t begin = 0;
    std::uintptr_t end = 0;
    if (std::sscanf(line.c_str(), "%lx-%lx ", &begin, &end) == 2) {
      const auto at = reinterpret_cast<std::uintptr_t>(address);
      inside = begin <= at && at < end;
    }
    if (inside && line.starts_with("VmFlags:")) return line + ' ';
  }
  return {};
}

}  // namespace ropewalk::test
