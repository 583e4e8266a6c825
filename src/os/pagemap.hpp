// What an address range of this process is made of, from the kernel's own tables.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

namespace ropewalk::os {

// A run has neighbouring present pages of one kind, clipped to the range asked for. Pages that are
// only the shared zero page do not count as present.
struct PageRun {
  std::uintptr_t begin;
  std::uintptr_t end;
  bool huge;  // mapped by one entry of 2 MiB or more
};

// One mapping (a line of /proc/self/maps), not clipped.
struct MappedArea {
  std::uintptr_t begin;
  std::uintptr_t end;
  // These come from smaps only.
  std::size_t page_bytes = 4096;   // hugetlb: of its pages
  std::size_t resident_bytes = 0;  // hugetlb included
  std::size_t huge_bytes = 0;      // hugetlb, or mapped by one PMD entry
};

// Calls ioctl PAGEMAP_SCAN (Linux 6.7), which takes about 1 us for each GiB of huge pages. Returns
// nothing where the kernel has not got it.
std::optional<std::vector<PageRun>> scan_pages(const void* address, std::size_t bytes);

// Finds present pages by /proc/self/pagemap, of which 8 bytes are read for each page; `huge` is
// never set. Any kernel has it.
std::vector<PageRun> present_pages(const void* address, std::size_t bytes);

// Returns the mappings that touch the range, in order of address. `sizes` reads smaps, which walks
// the page tables of the whole process; without it only begin and end are set.
std::vector<MappedArea> mapped_areas(const void* address, std::size_t bytes, bool sizes);
std::vector<MappedArea> mapped_areas(std::uintptr_t begin, std::uintptr_t end, bool sizes);

struct PageSummary {
  std::size_t resident_bytes = 0;
  std::size_t huge_bytes = 0;
};
// What of the runs lies in the area. smaps has one sum for a mapping: of a part of one with mixed
// pages, huge_bytes is a lower bound.
PageSummary summarize_area(const MappedArea& area, const std::vector<PageRun>& runs);
// Sum over the range, by the best method this kernel has.
PageSummary summarize_pages(const void* address, std::size_t bytes);

// Bytes of the runs by NUMA node (move_pages in query mode); empty where the kernel does not tell.
std::vector<std::size_t> bytes_by_node(const std::vector<PageRun>& runs);

}  // namespace ropewalk::os
