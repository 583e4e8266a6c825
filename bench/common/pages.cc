// Page kinds of the benchmarks; see pages.hpp.
#include "common/pages.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "common/parse.hpp"

namespace ropewalk::bench {
namespace {

constexpr int most_node = 1023;  // of the kernels that distributions build
constexpr PageSource sources[] = {PageSource::hugetlb_1g_memfd,  PageSource::hugetlb_memfd,
                                  PageSource::shmem_huge,        PageSource::shmem_small,
                                  PageSource::anonymous_hugetlb, PageSource::hugetlbfs_file,
                                  PageSource::memalign,          PageSource::thp};

std::vector<std::string> all_kinds() {
  std::vector<std::string> kinds = {"huge", "small", "memalign"};
  for (const PageSource source : sources) {
    if (source != PageSource::memalign) kinds.emplace_back(name(source));
  }
  return kinds;
}

std::string node_shares(const Inspection& found) {
  std::vector<std::string> parts;
  for (std::size_t node = 0; node < found.node_bytes.size(); ++node) {
    if (found.node_bytes[node] == 0) continue;
    const double share = 100.0 * static_cast<double>(found.node_bytes[node]) /
                         static_cast<double>(found.resident_bytes);
    parts.push_back(fmt::format("NUMA node {} {:.3g} %", node, share));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

// The two parts of "huge@hbm"; the second is empty where no place is named.
std::pair<std::string, std::string> parts_of(const std::string& kind) {
  const std::size_t at = kind.find('@');
  if (at == std::string::npos) return {kind, ""};
  return {kind.substr(0, at), kind.substr(at + 1)};
}

bool is_number(const std::string& place) {
  return !place.empty() && place.find_first_not_of("0123456789") == std::string::npos;
}

void check_place(const std::string& place) {
  if (is_number(place)) {
    integers("--memory", place, 0, most_node);
  } else {
    words("--memory", place, {"any", "ddr", "hbm", "cxl"});
  }
}

std::string shares(const Inspection& found) {
  if (found.resident_bytes == 0) return "nothing resident";
  std::vector<std::string> parts;
  for (const PageUse& use : found.pages) {
    if (use.bytes == 0) continue;
    const double share =
        100.0 * static_cast<double>(use.bytes) / static_cast<double>(found.resident_bytes);
    parts.push_back(fmt::format("{} {:.3g} %", size_text(use.page_bytes), share));
  }
  return fmt::format("{}", fmt::join(parts, ", "));
}

}  // namespace

const std::vector<std::string>& page_kinds() {
  static const std::vector<std::string> kinds = all_kinds();
  return kinds;
}

MemoryOptions memory_options(const std::string& kind) {
  const auto [pages, place] = parts_of(kind);
  MemoryOptions options;
  if (pages == "huge") {
    options.pages = PagePolicy::prefer;
  } else if (pages == "small") {
    options.pages = PagePolicy::never;
  } else {
    options.source = page_source(pages);
  }
  if (is_number(place)) {
    options.node = std::stoi(place);
  } else if (!place.empty()) {
    options.kind = memory_kind(place);
  }
  return options;
}

const char* const memory_help =
    "Where the buffers lie, as a list: any, ddr, hbm, cxl or the number of a NUMA node. Each kind "
    "of pages is measured on each, as huge@hbm";

std::vector<std::string> placed(const std::vector<std::string>& kinds, const std::string& places) {
  std::vector<std::string> all;
  for (const std::string& place : split(places, ',')) {
    const bool any = place == "any";
    check_place(place);
    for (const std::string& kind : kinds) {
      const std::string pair = any ? kind : fmt::format("{}@{}", kind, place);
      if (std::find(all.begin(), all.end(), pair) == all.end()) all.push_back(pair);
    }
  }
  return all;
}

PageBlock page_block(const std::string& kind, std::size_t bytes) {
  return PageBlock(bytes, memory_options(kind));
}

BackingReport backing_of(const std::string& kind, const void* address, std::size_t bytes) {
  const Inspection found = inspect(address, bytes);
  BackingReport result;
  result.kind = kind;
  result.all_huge = found.all_huge();
  result.text = shares(found);
  result.method = found.method;
  result.nodes = node_shares(found);
  return result;
}

BackingReport backing(const std::string& kind, const PageBlock& block) {
  BackingReport result = backing_of(kind, block.data(), block.bytes());
  result.source = name(block.source());
  result.downgrade = block.downgrade();
  return result;
}

Json to_json(const BackingReport& found) {
  Json json = {{"found", found.text}, {"all_huge", found.all_huge}, {"method", found.method}};
  if (!found.source.empty()) json["source"] = found.source;
  if (!found.nodes.empty()) json["nodes"] = found.nodes;
  if (!found.downgrade.empty()) json["downgrade"] = found.downgrade;
  return json;
}

std::string line(const BackingReport& found) {
  std::string text = fmt::format("{}: ", found.kind);
  if (!found.source.empty()) text += found.source + ", ";
  const auto [pages, place] = parts_of(found.kind);
  text += fmt::format("{} ({})", found.text, found.method);
  if (!place.empty()) text += "; " + found.nodes;
  if (pages == "huge" && !found.all_huge) {
    text += fmt::format("; NOT huge: {}",
                        found.downgrade.empty() ? "the kernel gave small pages" : found.downgrade);
  }
  return text;
}

}  // namespace ropewalk::bench
