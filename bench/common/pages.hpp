// Buffers by the name of their pages, and what their pages were found to be.
#pragma once

#include <string>
#include <vector>

#include "common/table.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::bench {

// "huge" (the best rung of the ladder), "small" (4 KiB pages that peers can map), "memalign" (the
// paper's baseline) and every name of PageSource.
const std::vector<std::string>& page_kinds();
MemoryOptions memory_options(const std::string& kind);

// Returns a touched block of that kind. "huge" may come out smaller: see BackingReport.
PageBlock page_block(const std::string& kind, std::size_t bytes);

// What inspect() found, in the words of the tables and of the JSON lines.
struct BackingReport {
  std::string kind;       // as asked for
  std::string source;     // PageSource of the block
  bool all_huge = false;  // every byte on pages of 2 MiB or more
  std::string text;       // "2 MiB 100 %" or "2 MiB 50 %, 4 KiB 50 %"
  std::string downgrade;  // why not better; empty if best
  std::string method;     // how the kernel was asked
};
BackingReport backing(const std::string& kind, const PageBlock& block);
BackingReport backing_of(const std::string& kind, const void* address, std::size_t bytes);
Json to_json(const BackingReport& backing);

// "huge: hugetlb-memfd, 2 MiB 100 % (pagemap-scan)", and the reason where huge was not had.
std::string line(const BackingReport& backing);

}  // namespace ropewalk::bench
