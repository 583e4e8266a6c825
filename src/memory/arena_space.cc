#include "memory/arena_space.hpp"

#include <algorithm>

#include "os/mapping.hpp"

namespace ropewalk::memory {

ArenaSpace::ArenaSpace(Segment& segment) : segment_(segment), kept_(segment.range().reserved / 4) {
  adopt();
}

// The segment grows here, and in one other place for a probe of its pages.
void ArenaSpace::adopt() {
  const std::size_t end = segment_.committed();
  if (end > known_) free_.give({known_, end - known_});
  known_ = end;
}

std::size_t ArenaSpace::base() const noexcept {
  return reinterpret_cast<std::uintptr_t>(segment_.range().base);
}

std::optional<Extent> ArenaSpace::take_free(std::size_t bytes, std::size_t alignment) {
  adopt();
  const auto offset = free_.take(bytes, alignment, base());
  if (!offset) return std::nullopt;
  return Extent{*offset, bytes};
}

std::string ArenaSpace::grow(std::size_t bytes, std::size_t alignment) {
  const std::size_t end = segment_.committed();
  const std::size_t start = os::round_up(base() + end - free_.tail(end), alignment) - base();
  if (start > segment_.range().reserved || bytes > segment_.range().reserved - start) {
    return segment_.grow(SIZE_MAX - segment_.range().granule);  // its text for a full range
  }
  // Address space and file size cost nothing on ordinary memory, and few large mappings are cheaper
  // for peers than many small ones; the pages come when they are handed out. A hugetlb pool pays at
  // once.
  std::size_t wanted = start + bytes;
  if (segment_.how().memfd == os::MemfdPages::normal) {
    wanted = std::max(wanted, std::min(end + end / 8, segment_.range().reserved));
  }
  return segment_.grow(wanted);
}

std::optional<Extent> ArenaSpace::take(std::size_t bytes, std::size_t alignment) {
  if (const auto found = take_free(bytes, alignment)) return found;
  return grow(bytes, alignment).empty() ? take_free(bytes, alignment) : std::nullopt;
}

std::optional<Extent> ArenaSpace::find(std::size_t bytes, std::size_t alignment,
                                       std::string& refused) {
  if (bytes > segment_.range().reserved || alignment > segment_.range().reserved) {
    refused = segment_.grow(SIZE_MAX - segment_.range().granule);
    return std::nullopt;
  }
  if (const auto kept = kept_.take(bytes, alignment, base())) {
    ++hits_;
    return kept;
  }
  ++misses_;
  if (const auto found = take_free(bytes, alignment)) return found;
  refused = grow(bytes, alignment);
  if (!refused.empty()) {
    release_kept();  // what is kept may be what is missing
    if (const auto found = take_free(bytes, alignment)) return found;
    refused = grow(bytes, alignment);
  }
  return refused.empty() ? take_free(bytes, alignment) : std::nullopt;
}

bool ArenaSpace::take_at(Extent extent) {
  adopt();
  if (free_.take_at(extent)) return true;
  const std::size_t end = segment_.committed();
  if (extent.offset + free_.tail(end) != end || !grow(extent.bytes, line).empty()) return false;
  adopt();
  return free_.take_at(extent);
}

Extent ArenaSpace::give(Extent extent) { return free_.give(extent); }

void ArenaSpace::retire(Extent block) {
  const Extent joined = give(block);
  const std::size_t granule = segment_.range().granule;
  const std::size_t begin = std::max(joined.offset, os::round_down(block.offset, granule));
  const std::size_t end =
      std::min(joined.offset + joined.bytes, os::round_up(block.offset + block.bytes, granule));
  if (end - begin >= granule) segment_.release({begin, end - begin});
}

void ArenaSpace::bound_kept(std::size_t bytes) noexcept {
  kept_.bound(std::min(bytes, segment_.range().reserved / 4));
}

void ArenaSpace::release_kept() {
  while (const auto block = kept_.oldest()) {
    free_.give(*block);  // which may throw
    kept_.drop_oldest();
  }
}

void ArenaSpace::trim() {
  release_kept();
  for (const auto& [offset, bytes] : free_.extents()) segment_.release({offset, bytes});
}

void ArenaSpace::clear() noexcept {
  free_.clear();
  kept_.clear();
  known_ = segment_.committed();
}

}  // namespace ropewalk::memory
