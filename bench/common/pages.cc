// Page kinds of the benchmarks; see pages.hpp.
#include "common/pages.hpp"

#include <fmt/format.h>

#include "common/parse.hpp"

namespace ropewalk::bench {
namespace {

constexpr PageSource sources[] = {PageSource::hugetlb_1g_memfd,  PageSource::hugetlb_memfd,
                                  PageSource::shmem_huge,        PageSource::shmem_small,
                                  PageSource::anonymous_hugetlb, PageSource::hugetlbfs_file,
                                  PageSource::memalign};

std::vector<std::string> all_kinds() {
  std::vector<std::string> kinds = {"huge", "small", "memalign"};
  for (const PageSource source : sources) {
    if (source != PageSource::memalign) kinds.emplace_back(name(source));
  }
  return kinds;
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
  MemoryOptions options;
  if (kind == "huge") {
    options.pages = PagePolicy::prefer;
  } else if (kind == "small") {
    options.pages = PagePolicy::never;
  } else {
    options.source = page_source(kind);
  }
  return options;
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
  if (!found.downgrade.empty()) json["downgrade"] = found.downgrade;
  return json;
}

std::string line(const BackingReport& found) {
  std::string text = fmt::format("{}: ", found.kind);
  if (!found.source.empty()) text += found.source + ", ";
  text += fmt::format("{} ({})", found.text, found.method);
  if (found.kind == "huge" && !found.all_huge) {
    text += fmt::format("; NOT huge: {}",
                        found.downgrade.empty() ? "the kernel gave small pages" : found.downgrade);
  }
  return text;
}

}  // namespace ropewalk::bench
