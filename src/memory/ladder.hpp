// The order in which mechanisms are tried, and the texts that say why some could not be used.
#pragma once

#include <string>
#include <vector>

#include "memory/mechanism.hpp"

namespace ropewalk::memory {

// Lists the rungs from best to last. A source asked for by name is the only rung.
std::vector<PageSource> rungs(const MemoryOptions&);

// Only verified huge pages are accepted.
bool is_strict(const MemoryOptions&, const Mechanism&);

// The text becomes "hugetlb-memfd: the pool ...; shmem-huge: ..." without doubles.
void add_reason(std::string& reasons, PageSource, const std::string& shortfall);

struct LadderBlock {
  Block block;
  PageSource source;
  std::string downgrade;
};
// Returns the first rung that gives `bytes` as promised; throws Error(memory) with all reasons
// where none does.
LadderBlock climb(std::size_t bytes, const MemoryOptions&);

}  // namespace ropewalk::memory
