// These inspect by one named method, so that tests can compare the two.
#pragma once

#include "ropewalk/memory.hpp"

namespace ropewalk::memory {

// Returns nothing where the kernel has no PAGEMAP_SCAN. Both throw Error(argument) as inspect does.
std::optional<Inspection> inspect_by_scan(const void* address, std::size_t bytes);
Inspection inspect_by_smaps(const void* address, std::size_t bytes);

}  // namespace ropewalk::memory
