#include "memory/segment.hpp"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <utility>

#include "os/pagemap.hpp"

namespace ropewalk::memory {

Segment::Segment(const Mechanism& how, os::Mapping range)
    : how_(&how),
      range_(std::move(range)),
      file_(os::open_memfd("ropewalk-arena", *how.memfd)),
      granule_(std::max(how.page_bytes, os::huge_2m)) {
  if (!file_) {
    throw Error(ErrorCode::memory, "arena: " + std::string(name(how.source)) + ": " +
                                       explain_refusal(how, "memfd_create", granule_, errno));
  }
  states_.resize(range_.bytes() / granule_, State::empty);
}

std::size_t Segment::huge_bytes() const noexcept {
  const auto count = std::count(states_.begin(), states_.end(), State::huge);
  return static_cast<std::size_t>(count) * granule_;
}

std::string Segment::grow(std::size_t bytes) {
  const std::size_t old = committed();
  const std::size_t wanted = os::round_up(bytes, granule_);
  if (wanted > reserved()) {
    return "the arena's range of " + std::to_string(reserved()) +
           " bytes is full; set ROPEWALK_ARENA_BYTES higher";
  }
  if (wanted <= old) return {};
  if (const int error = os::grow_file(file_.get(), wanted)) {
    return explain_refusal(*how_, "ftruncate", wanted - old, error);
  }
  if (const int error = os::map_shared_at(base() + old, file_.get(), wanted - old, old)) {
    // MAP_FIXED may have unmapped the range before it failed: keep others out of it.
    os::unmap_to_reserved(base() + old, wanted - old);
    return explain_refusal(*how_, "mmap", wanted - old, error);
  }
  // Release: whoever reads the new size (acquire in committed()) finds the range mapped.
  committed_.store(wanted, std::memory_order_release);
  return {};
}

// Granules [first, last) have no pages yet, or small ones that are asked to become huge.
Backing Segment::back_run(std::size_t first, std::size_t last) {
  std::byte* data = base() + first * granule_;
  Backing result = how_->back({data, (last - first) * granule_, file_.get(), first * granule_});
  if (!result.present) return result;
  for (std::size_t at = first; at < last; ++at) {
    const bool all = result.huge_bytes == (last - first) * granule_;
    const bool huge =
        all || (result.huge_bytes > 0 &&
                os::summarize_pages(base() + at * granule_, granule_).huge_bytes == granule_);
    states_[at] = huge ? State::huge : State::small;
  }
  return result;
}

Backing Segment::back(Extent extent, bool strict) {
  const std::size_t end = (extent.offset + extent.bytes + granule_ - 1) / granule_;
  const auto done = [&](std::size_t at) {
    return states_[at] == State::huge || (states_[at] == State::small && !strict);
  };
  Backing sum;
  sum.present = true;
  for (std::size_t at = extent.offset / granule_; at < end;) {
    std::size_t last = at + 1;
    while (last < end && done(last) == done(at)) ++last;
    if (!done(at)) {
      Backing part = back_run(at, last);
      sum.present = sum.present && part.present;
      if (!part.shortfall.empty()) sum.shortfall = std::move(part.shortfall);
      if (!sum.present) break;
    }
    at = last;
  }
  for (std::size_t at = extent.offset / granule_; at < end; ++at) {
    if (states_[at] == State::huge) sum.huge_bytes += granule_;
  }
  return sum;
}

void Segment::release(Extent extent) noexcept {
  const std::size_t first = (extent.offset + granule_ - 1) / granule_;
  const std::size_t last = (extent.offset + extent.bytes) / granule_;
  for (std::size_t at = first; at < last;) {
    std::size_t end = at;
    while (end < last && states_[end] != State::empty) ++end;
    if (end > at && os::punch_hole(file_.get(), at * granule_, (end - at) * granule_) == 0) {
      std::fill(states_.begin() + static_cast<std::ptrdiff_t>(at),
                states_.begin() + static_cast<std::ptrdiff_t>(end), State::empty);
    }
    at = std::max(end, at + 1);
  }
}

void Segment::forget_pages() noexcept { std::fill(states_.begin(), states_.end(), State::empty); }

// Granules count as empty afterwards, although live blocks have their pages: backing them again
// keeps what they hold.
bool Segment::copy(std::span<const Extent> live, const Mechanism& how) noexcept {
  const std::size_t start = begin();
  const std::size_t end = committed();
  os::Descriptor file = copy_extents(base(), end, live);
  if (!file) return false;
  if (!replace_mapping(base() + start, end - start, start, std::move(file), file_.get())) {
    return false;
  }
  how_ = &how;
  forget_pages();
  return true;
}

void Segment::drop(const Mechanism& how) noexcept {
  const std::size_t old = committed();
  os::unmap_to_reserved(base(), old);
  os::Descriptor file = os::open_memfd("ropewalk-fork", os::MemfdPages::normal);
  const bool own =
      file && os::grow_file(file.get(), old) == 0 && dup3(file.get(), file_.get(), O_CLOEXEC) >= 0;
  if (!own) file_.reset();  // never the parent's: every growth fails with EBADF
  begin_.store(old, std::memory_order_release);
  how_ = &how;
  forget_pages();
}

}  // namespace ropewalk::memory
