#include "os/pagemap.hpp"

#include <fcntl.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cinttypes>
#include <cstdio>
#include <cstring>
#include <memory>
#include <string>

#include "os/file.hpp"
#include "os/mapping.hpp"

namespace ropewalk::os {
namespace {

// From linux/fs.h of Linux 6.7; Debian 12's headers are older.
struct ScanRegion {
  std::uint64_t start, end, categories;
};
struct ScanArgument {
  std::uint64_t size, flags, start, end, walk_end, vec, vec_len, max_pages, category_inverted,
      category_mask, category_anyof_mask, return_mask;
};
constexpr unsigned long scan_request = _IOWR('f', 16, ScanArgument);
constexpr std::uint64_t scan_present = 1U << 3;
constexpr std::uint64_t scan_zero_page = 1U << 5;
constexpr std::uint64_t scan_huge = 1U << 6;

std::uintptr_t first_page(const void* address) {
  return round_down(reinterpret_cast<std::uintptr_t>(address), page_bytes());
}
std::uintptr_t end_page(const void* address, std::size_t bytes) {
  return round_up(reinterpret_cast<std::uintptr_t>(address) + bytes, page_bytes());
}

// Adds a run clipped to [begin, end), joined to the last one where they touch.
void add_run(std::vector<PageRun>& runs, PageRun run, std::uintptr_t begin, std::uintptr_t end) {
  run.begin = std::max(run.begin, begin);
  run.end = std::min(run.end, end);
  if (run.begin >= run.end) return;
  if (!runs.empty() && runs.back().end == run.begin && runs.back().huge == run.huge) {
    runs.back().end = run.end;
  } else {
    runs.push_back(run);
  }
}

struct CloseFile {
  void operator()(FILE* file) const noexcept { std::fclose(file); }
};
using File = std::unique_ptr<FILE, CloseFile>;

void read_size_line(const char* line, MappedArea& area) {
  std::size_t kilobytes = 0;
  char key[64];
  if (std::sscanf(line, "%63[^:]: %zu kB", key, &kilobytes) != 2) return;
  const std::string name = key;
  const std::size_t bytes = kilobytes * kib;
  if (name == "KernelPageSize") area.page_bytes = bytes;
  const bool hugetlb = name == "Shared_Hugetlb" || name == "Private_Hugetlb";
  if (name == "Rss" || hugetlb) area.resident_bytes += bytes;
  if (hugetlb || name == "AnonHugePages" || name == "ShmemPmdMapped" || name == "FilePmdMapped") {
    area.huge_bytes += bytes;
  }
}

std::size_t overlap(const PageRun& run, const MappedArea& area) {
  const auto begin = std::max(run.begin, area.begin);
  const auto end = std::min(run.end, area.end);
  return begin < end ? end - begin : 0;
}

PageSummary summarize_by_smaps(const void* address, std::size_t bytes) {
  PageSummary sum;
  const auto runs = present_pages(address, bytes);
  for (const MappedArea& area : mapped_areas(address, bytes, true)) {
    const PageSummary part = summarize_area(area, runs);
    sum.resident_bytes += part.resident_bytes;
    sum.huge_bytes += part.huge_bytes;
  }
  return sum;
}

}  // namespace

std::optional<std::vector<PageRun>> scan_pages(const void* address, std::size_t bytes) {
  const Descriptor file(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!file) return std::nullopt;
  std::array<ScanRegion, 256> regions;
  ScanArgument argument{};
  argument.size = sizeof argument;
  argument.start = first_page(address);
  argument.end = end_page(address, bytes);
  argument.vec = reinterpret_cast<std::uintptr_t>(regions.data());
  argument.vec_len = regions.size();
  argument.category_mask = scan_present;
  argument.return_mask = scan_present | scan_zero_page | scan_huge;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  std::vector<PageRun> runs;
  while (argument.start < argument.end) {
    const int found = ioctl(file.get(), scan_request, &argument);
    if (found < 0) return std::nullopt;
    for (int i = 0; i < found; ++i) {
      const ScanRegion& region = regions[static_cast<std::size_t>(i)];
      if ((region.categories & scan_zero_page) != 0) continue;
      add_run(runs, {region.start, region.end, (region.categories & scan_huge) != 0}, begin,
              begin + bytes);
    }
    if (argument.walk_end <= argument.start) break;
    argument.start = argument.walk_end;
  }
  return runs;
}

std::vector<PageRun> present_pages(const void* address, std::size_t bytes) {
  constexpr std::uint64_t present = std::uint64_t{1} << 63;
  std::vector<PageRun> runs;
  const Descriptor file(open("/proc/self/pagemap", O_RDONLY | O_CLOEXEC));
  if (!file) return runs;
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  const std::size_t step = page_bytes();
  std::array<std::uint64_t, 512> entries;
  for (auto page = first_page(address); page < end_page(address, bytes);) {
    const std::size_t left = (end_page(address, bytes) - page) / step;
    const std::size_t wanted = std::min(left, entries.size()) * sizeof(std::uint64_t);
    const ssize_t got = pread(file.get(), entries.data(), wanted,
                              static_cast<off_t>(page / step * sizeof(std::uint64_t)));
    if (got <= 0) break;
    for (std::size_t i = 0; i < static_cast<std::size_t>(got) / sizeof(std::uint64_t); ++i) {
      if ((entries[i] & present) != 0) {
        add_run(runs, {page, page + step, false}, begin, begin + bytes);
      }
      page += step;
    }
  }
  return runs;
}

std::vector<MappedArea> mapped_areas(const void* address, std::size_t bytes, bool sizes) {
  const auto begin = reinterpret_cast<std::uintptr_t>(address);
  return mapped_areas(begin, begin + bytes, sizes);
}

std::vector<MappedArea> mapped_areas(std::uintptr_t begin, std::uintptr_t end, bool sizes) {
  std::vector<MappedArea> areas;
  const File file(std::fopen(sizes ? "/proc/self/smaps" : "/proc/self/maps", "re"));
  if (!file) return areas;
  char line[8192];  // longest path and the numbers before it
  bool inside = false;
  while (std::fgets(line, sizeof line, file.get()) != nullptr) {
    std::uintptr_t first = 0;
    std::uintptr_t last = 0;
    if (std::sscanf(line, "%" SCNxPTR "-%" SCNxPTR " ", &first, &last) == 2) {
      if (first >= end) break;
      inside = last > begin;
      if (inside) areas.push_back({first, last});
    } else if (inside) {
      read_size_line(line, areas.back());
    }
  }
  return areas;
}

PageSummary summarize_area(const MappedArea& area, const std::vector<PageRun>& runs) {
  PageSummary sum;
  for (const PageRun& run : runs) sum.resident_bytes += overlap(run, area);
  // What of the area's small pages may lie in our part is taken to lie there.
  const std::size_t small = area.resident_bytes - std::min(area.resident_bytes, area.huge_bytes);
  sum.huge_bytes = sum.resident_bytes - std::min(sum.resident_bytes, small);
  return sum;
}

PageSummary summarize_pages(const void* address, std::size_t bytes) {
  const auto runs = scan_pages(address, bytes);
  if (!runs) return summarize_by_smaps(address, bytes);
  PageSummary sum;
  for (const PageRun& run : *runs) {
    sum.resident_bytes += run.end - run.begin;
    if (run.huge) sum.huge_bytes += run.end - run.begin;
  }
  return sum;
}

namespace {

// This is one question to the kernel: up to a batch of pages, and how many of our bytes each stands
// for.
struct NodeQuery {
  static constexpr std::size_t capacity = 1024;
  std::array<std::uintptr_t, capacity> pages;  // the kernel reads them as void*
  std::array<std::size_t, capacity> weight;
  std::size_t count = 0;

  bool ask(std::vector<std::size_t>& by_node) {
    std::array<int, capacity> status;
    const long result = syscall(SYS_move_pages, 0, count, pages.data(), nullptr, status.data(), 0);
    if (result < 0) return false;
    for (std::size_t i = 0; i < count; ++i) {
      if (status[i] < 0) continue;  // went away meanwhile
      const auto node = static_cast<std::size_t>(status[i]);
      if (by_node.size() <= node) by_node.resize(node + 1);
      by_node[node] += weight[i];
    }
    count = 0;
    return true;
  }
};

}  // namespace

std::vector<std::size_t> bytes_by_node(const std::vector<PageRun>& runs) {
  std::vector<std::size_t> by_node;
  const auto query = std::make_unique<NodeQuery>();
  for (const PageRun& run : runs) {
    const std::size_t step = run.huge ? huge_2m : page_bytes();
    for (auto at = run.begin; at < run.end;) {
      const auto next = std::min<std::uintptr_t>(run.end, round_down(at, step) + step);
      query->pages[query->count] = round_down(at, page_bytes());
      query->weight[query->count++] = next - at;
      at = next;
      if (query->count == NodeQuery::capacity && !query->ask(by_node)) return {};
    }
  }
  if (query->count > 0 && !query->ask(by_node)) return {};
  return by_node;
}

}  // namespace ropewalk::os
