// Buffers by the name of their pages, and what their pages were found to be.
#pragma once

#include <string>
#include <vector>

#include "common/table.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::bench {

// "huge" (the best rung of the ladder), "small" (4 KiB pages that peers can map), "memalign" (the
// paper's baseline) and every name of PageSource, "thp" among them.
const std::vector<std::string>& page_kinds();
MemoryOptions memory_options(const std::string& kind);

// Crosses kinds of pages with places, as `--memory` lists them: "any", the kinds of memory (ddr,
// hbm, cxl) and numbers of NUMA nodes. A pair is written "huge@hbm", and all functions here
// understand it; beside "any" a kind of pages stands alone. Throws Error(argument) for a place of
// another form; whether this machine has it, the block tells.
std::vector<std::string> placed(const std::vector<std::string>& kinds, const std::string& places);
// The text of `--memory` for a help message.
extern const char* const memory_help;

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
  std::string nodes;      // "NUMA node 2 100 %"; empty where the kernel does not tell
};
BackingReport backing(const std::string& kind, const PageBlock& block);
BackingReport backing_of(const std::string& kind, const void* address, std::size_t bytes);
Json to_json(const BackingReport& backing);

// "huge: hugetlb-memfd, 2 MiB 100 % (pagemap-scan)", and the reason where huge was not had.
std::string line(const BackingReport& backing);

}  // namespace ropewalk::bench
