#include "memory/inspection.hpp"

#include <map>

#include "memory/fork_policy.hpp"
#include "os/mapping.hpp"
#include "os/pagemap.hpp"

namespace ropewalk {
namespace memory {
namespace {

using PageSizes = std::map<std::size_t, std::size_t, std::greater<>>;  // page size -> bytes

void require_mapped(const void* address, std::size_t bytes) {
  auto at = reinterpret_cast<std::uintptr_t>(address);
  if (bytes > UINTPTR_MAX - at) {
    throw Error(ErrorCode::argument,
                "bytes: the range goes beyond the end of memory; pass the length of the buffer");
  }
  const auto end = at + bytes;
  for (const os::MappedArea& area : os::mapped_areas(address, bytes, false)) {
    if (area.begin > at) break;
    at = area.end;
  }
  if (at < end) {
    throw Error(ErrorCode::argument, "address: the range of " + std::to_string(bytes) +
                                         " bytes is not mapped whole; pass memory that is");
  }
}

Inspection start(const void* address, std::size_t bytes) {
  require_mapped(address, bytes);
  Inspection result;
  result.bytes = bytes;
  const auto at = reinterpret_cast<std::uintptr_t>(address);
  result.alignment = at & (~at + 1);
  result.peers_can_map = peers_can_map(address, bytes);
  return result;
}

void finish(Inspection& result, const PageSizes& sizes) {
  for (const auto& [page, bytes] : sizes) {
    if (bytes > 0) result.pages.push_back({page, bytes});
    result.resident_bytes += bytes;
  }
}

// The scan tells huge pages from small ones. Pages of 1 GiB are looked for only where a mapping
// could hold one, since smaps, which knows them, walks the whole process.
std::size_t huge_page_bytes(const os::PageRun& run) {
  for (const os::MappedArea& area : os::mapped_areas(run.begin, run.begin + 1, false)) {
    if (area.begin % os::gib != 0 || (area.end - area.begin) % os::gib != 0) continue;
    for (const os::MappedArea& sized : os::mapped_areas(run.begin, run.begin + 1, true)) {
      if (sized.page_bytes > os::huge_2m) return sized.page_bytes;
    }
  }
  return os::huge_2m;
}

// A run may go over several mappings.
void add_huge_run(PageSizes& sizes, const os::PageRun& run) {
  for (auto at = run.begin; at < run.end;) {
    auto end = run.end;
    for (const os::MappedArea& area : os::mapped_areas(at, at + 1, false)) {
      end = std::min(end, area.end);
    }
    sizes[huge_page_bytes({at, end, true})] += end - at;
    at = end;
  }
}

}  // namespace

std::optional<Inspection> inspect_by_scan(const void* address, std::size_t bytes) {
  Inspection result = start(address, bytes);
  const auto runs = os::scan_pages(address, bytes);
  if (!runs) return std::nullopt;
  PageSizes sizes;
  for (const os::PageRun& run : *runs) {
    if (run.huge) {
      add_huge_run(sizes, run);
    } else {
      sizes[os::page_bytes()] += run.end - run.begin;
    }
  }
  finish(result, sizes);
  result.node_bytes = os::bytes_by_node(*runs);
  result.method = "pagemap-scan";
  return result;
}

Inspection inspect_by_smaps(const void* address, std::size_t bytes) {
  Inspection result = start(address, bytes);
  PageSizes sizes;
  const auto runs = os::present_pages(address, bytes);
  for (const os::MappedArea& area : os::mapped_areas(address, bytes, true)) {
    const os::PageSummary part = os::summarize_area(area, runs);
    const bool hugetlb = area.page_bytes > os::page_bytes();
    sizes[hugetlb ? area.page_bytes : os::huge_2m] += part.huge_bytes;
    sizes[os::page_bytes()] += part.resident_bytes - part.huge_bytes;
  }
  finish(result, sizes);
  result.node_bytes = os::bytes_by_node(runs);
  result.method = "smaps";
  return result;
}

}  // namespace memory

bool Inspection::all_huge() const noexcept {
  return std::all_of(pages.begin(), pages.end(),
                     [](const PageUse& use) { return use.page_bytes >= os::huge_2m; });
}

Inspection inspect(const void* address, std::size_t bytes) {
  if (auto found = memory::inspect_by_scan(address, bytes)) return *std::move(found);
  return memory::inspect_by_smaps(address, bytes);
}

}  // namespace ropewalk
