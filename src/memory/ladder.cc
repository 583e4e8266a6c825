#include "memory/ladder.hpp"

namespace ropewalk::memory {
namespace {

// Memory on mixed pages is not what shmem_huge promises; it is a good shmem_small.
PageSource honest_source(const Mechanism& how, const Block& block) {
  if (how.huge && block.backing.huge_bytes < block.mapping.bytes()) return PageSource::shmem_small;
  return how.source;
}

bool acceptable(const Mechanism& how, const Block& block, const MemoryOptions& options) {
  if (!block.backing.present) return false;
  const bool whole = !how.huge || block.backing.huge_bytes == block.mapping.bytes();
  return whole || !is_strict(options, how);
}

}  // namespace

std::vector<PageSource> rungs(const MemoryOptions& options) {
  if (options.source) return {*options.source};
  switch (options.pages) {
    case PagePolicy::require:
      return {PageSource::hugetlb_memfd, PageSource::shmem_huge};
    case PagePolicy::prefer:
      return {PageSource::hugetlb_memfd, PageSource::shmem_huge, PageSource::shmem_small};
    case PagePolicy::never:
      break;
  }
  return {PageSource::shmem_small};
}

bool is_strict(const MemoryOptions& options, const Mechanism& how) {
  return how.huge && (options.source.has_value() || options.pages == PagePolicy::require);
}

void add_reason(std::string& reasons, PageSource source, const std::string& shortfall) {
  const std::string entry = std::string(name(source)) + ": " + shortfall;
  if (shortfall.empty() || reasons.find(entry) != std::string::npos) return;
  reasons += reasons.empty() ? entry : "; " + entry;
}

LadderBlock climb(std::size_t bytes, const MemoryOptions& options) {
  const NumaPlacement placement(options);
  std::string reasons;
  for (const PageSource source : rungs(options)) {
    const Mechanism& how = mechanism(source);
    if (bytes > SIZE_MAX / 2) break;
    Block block = how.block(os::round_up(bytes, how.page_bytes), placement);
    add_reason(reasons, source, block.backing.shortfall);
    if (!acceptable(how, block, options)) continue;
    const std::string misplaced = placement.verify(block.mapping.data(), block.mapping.bytes());
    add_reason(reasons, source, misplaced);
    if (!misplaced.empty()) continue;
    const PageSource really = honest_source(how, block);
    return {std::move(block), really, std::move(reasons)};
  }
  if (reasons.empty()) reasons = "no address space holds them";
  throw Error(ErrorCode::memory, "bytes: " + std::to_string(bytes) + " cannot be had: " + reasons);
}

}  // namespace ropewalk::memory
