#include "memory/segment.hpp"

#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <utility>

#include "os/cancellation.hpp"
#include "os/pagemap.hpp"

namespace ropewalk::memory {
namespace {

// The descriptor gets a high number, out of the way of programs that count on the lowest free
// number, or close a handful of them.
os::Descriptor move_up(os::Descriptor file) noexcept {
  rlimit limit{};
  if (!file || getrlimit(RLIMIT_NOFILE, &limit) != 0) return file;
  const rlim_t floor = std::min<rlim_t>(limit.rlim_cur - limit.rlim_cur / 4, 1000);
  os::Descriptor higher(fcntl(file.get(), F_DUPFD_CLOEXEC, static_cast<int>(floor)));
  return higher ? std::move(higher) : std::move(file);
}

std::size_t granule_of(const Mechanism& how) noexcept {
  return std::max(how.page_bytes, os::huge_2m);
}

}  // namespace

Segment::Segment(const Mechanism& how, os::Mapping range, NumaPlacement placement)
    : how_(&how),
      placement_(std::move(placement)),
      mapping_(std::move(range)),
      granules_(mapping_.bytes(), granule_of(how)),
      file_(move_up(os::open_memfd("ropewalk-arena", *how.memfd))) {
  range_.base = mapping_.data();
  range_.reserved = mapping_.bytes();
  range_.granule = granule_of(how);
  range_.pages = granules_.data();
  note_pool();
  if (!file_) {
    throw Error(ErrorCode::memory, "arena: " + std::string(name(how.source)) + ": " +
                                       explain_refusal(how, "memfd_create", range_.granule, errno));
  }
  remember_file();
}

void Segment::note_pool() noexcept {
  range_.pooled.store(how_->memfd != os::MemfdPages::normal, std::memory_order_relaxed);
}

void Segment::remember_file() noexcept {
  struct stat state {};
  if (fstat(file_.get(), &state) != 0) return;
  device_ = state.st_dev;
  inode_ = state.st_ino;
}

int Segment::descriptor() const noexcept {
  struct stat state {};
  const bool ours =
      file_ && fstat(file_.get(), &state) == 0 && state.st_dev == device_ && state.st_ino == inode_;
  return ours ? file_.get() : -1;
}

std::string Segment::grow(std::size_t bytes) {
  const std::size_t old = committed();
  const std::size_t wanted = os::round_up(bytes, range_.granule);
  if (wanted > range_.reserved) {
    return "the arena's range of " + std::to_string(range_.reserved) +
           " bytes is full; set ROPEWALK_ARENA_BYTES higher";
  }
  if (wanted <= old) return {};
  const os::NotCancelled whole;
  const int file = descriptor();
  if (file < 0) return "the program has closed the arena's file descriptor";
  if (const int error = os::grow_file(file, wanted)) {
    return explain_refusal(*how_, "ftruncate", wanted - old, error);
  }
  if (const int error = os::map_shared_at(range_.base + old, file, wanted - old, old)) {
    // MAP_FIXED may have unmapped the range before it failed: keep others out of it.
    os::unmap_to_reserved(range_.base + old, wanted - old);
    return explain_refusal(*how_, "mmap", wanted - old, error);
  }
  os::keep_from_children(range_.base + old, wanted - old);
  std::string refused = placement_.bind(range_.base + old, wanted - old);
  if (!refused.empty()) return refused;
  wish_pages(range_.base + old, wanted - old);
  range_.committed.store(wanted, std::memory_order_release);
  return {};
}

// The advice is given for the whole range at once, so that it stays one mapping of the kernel's.
// Systems that honour it give huge pages at first touch.
void Segment::wish_pages(void* address, std::size_t bytes) const noexcept {
  if (how_->source == PageSource::shmem_huge) os::advise_huge(address, bytes);
  if (how_->source == PageSource::shmem_small) os::advise_small(address, bytes);
}

// The granules of the run have no pages yet, or small ones that are asked to become huge.
Backing Segment::back_run(Granules::Run run) {
  const std::size_t granule = range_.granule;
  const std::size_t start = run.first * granule;
  const std::size_t bytes = (run.end - run.first) * granule;
  const os::NotCancelled whole;
  Backing result = how_->back({range_.base + start, bytes, file_.get(), start});
  if (!result.present) return result;
  std::string misplaced = placement_.verify(range_.base + start, bytes);
  if (!misplaced.empty()) {
    result.present = false;
    result.shortfall = std::move(misplaced);
    return result;
  }
  for (std::size_t at = run.first; at < run.end; ++at) {
    const bool huge =
        result.huge_bytes == bytes ||
        (result.huge_bytes > 0 &&
         os::summarize_pages(range_.base + at * granule, granule).huge_bytes == granule);
    granules_.set({at, at + 1}, huge ? Pages::huge : Pages::small);
  }
  return result;
}

template <class Done>
Backing Segment::back_where_not(Extent extent, const Done& done) {
  const Granules::Run all = granules_.around(extent);
  Backing sum;
  sum.present = true;
  for (std::size_t at = all.first; at < all.end;) {
    std::size_t last = at + 1;
    while (last < all.end && done(granules_.at(last)) == done(granules_.at(at))) ++last;
    if (!done(granules_.at(at))) {
      Backing part = back_run({at, last});
      sum.present = sum.present && part.present;
      if (!part.shortfall.empty()) sum.shortfall = std::move(part.shortfall);
      if (!sum.present) break;
    }
    at = last;
  }
  sum.huge_bytes += granules_.huge_bytes(all);
  return sum;
}

Backing Segment::back(Extent extent, bool strict) {
  const Pages enough = strict ? Pages::huge : Pages::small;
  return back_where_not(extent, [=](Pages pages) { return pages >= enough; });
}

// Where no huge pages are to be had, or the memory is short, there is nothing to gain, and nothing
// lost: the pages come by first touch.
Backing Segment::settle(Extent extent) {
  Backing result;
  if (how_->huge) {
    result = back_where_not(extent, [](Pages pages) { return pages >= Pages::small; });
  }
  granules_.raise(granules_.around(extent), Pages::small);
  return result;
}

// The advice is given by address and not through the file, so that the memory hooks of MPI
// libraries see it: they keep buffers registered with the fabric after a free, until they see one
// of munmap, madvise, sbrk.
void Segment::release(Extent extent) noexcept {
  const std::size_t granule = range_.granule;
  const std::size_t first = (extent.offset + granule - 1) / granule;
  const std::size_t last = (extent.offset + extent.bytes) / granule;
  for (std::size_t at = first; at < last;) {
    std::size_t end = at;
    while (end < last && granules_.at(end) != Pages::none) ++end;
    if (end > at && os::remove_pages(range_.base + at * granule, (end - at) * granule) == 0) {
      granules_.set({at, end}, Pages::none);
    }
    at = std::max(end, at + 1);
  }
}

// The pages of a pool stay, so their bytes are cleared: by stores, or, where the program has taken
// away its own right to write, through a second mapping.
int Segment::zero(Extent extent) noexcept {
  if (os::populate_write(range_.base + extent.offset, extent.bytes) == 0) {
    std::memset(range_.base + extent.offset, 0, extent.bytes);
    return 0;
  }
  const std::size_t first = os::round_down(extent.offset, range_.granule);
  const std::size_t end = os::round_up(extent.offset + extent.bytes, range_.granule);
  const os::Mapping window = os::map_shared(descriptor(), end - first, first, range_.granule);
  if (!window) return errno;
  std::memset(window.data() + (extent.offset - first), 0, extent.bytes);
  return 0;
}

// This takes no lock, so that a signal handler may do it: what is known of a granule only gets
// worse. The advice goes first by address, for the memory hooks, which see what is about to go. The
// kernel refuses it where the program has taken its own right to write (EACCES), or locked the
// pages.
int Segment::discard(Extent extent, bool locked_too) noexcept {
  const os::NotCancelled whole;
  if (range_.pooled.load(std::memory_order_relaxed)) return zero(extent);
  int error = os::remove_pages(range_.base + extent.offset, extent.bytes);
  if (error == EACCES || (error == EINVAL && locked_too)) {
    const int file = descriptor();
    if (file >= 0) error = os::punch_file(file, extent.offset, extent.bytes);
  }
  if (error != 0) return error;
  granules_.lower(granules_.around(extent), Pages::touched);
  return 0;
}

// The file knows which pages it has: all others are zero. It is asked once for each part, and the
// rest of the part is assumed to have pages, because asking where the data ends costs as much as
// clearing it.
void Segment::clear(int file, std::byte* base, Extent extent) noexcept {
  constexpr std::size_t part = os::mib;
  const std::size_t end = extent.offset + extent.bytes;
  for (std::size_t at = extent.offset; at < end;) {
    const off_t data = file < 0 ? -1 : lseek(file, static_cast<off_t>(at), SEEK_DATA);
    if (data < 0 && file >= 0 && errno == ENXIO) return;
    if (data >= 0) at = static_cast<std::size_t>(data);
    if (at >= end) return;
    const std::size_t stop = std::min(end, at + part);
    std::memset(base + at, 0, stop - at);
    at = stop;
  }
}

void Segment::leave_to_child(bool leave) noexcept {
  const std::size_t start = begin();
  const std::size_t end = committed();
  if (end == start) return;
  if (leave) {
    os::leave_to_children(range_.base + start, end - start);
  } else {
    os::keep_from_children(range_.base + start, end - start);
  }
}

// Granules count as touched afterwards: backing them again keeps what they hold.
bool Segment::copy(std::span<const Extent> live, const Mechanism& how) noexcept {
  const std::size_t start = begin();
  const std::size_t end = committed();
  const int parents = descriptor();
  if (parents < 0) return false;
  os::Descriptor file = copy_file(parents, end, live);
  if (!file) return false;
  std::byte* data = range_.base + start;
  if (!replace_mapping(data, end - start, start, std::move(file), parents)) return false;
  how_ = &how;
  note_pool();
  wish_pages(data, end - start);
  remember_file();
  granules_.set({0, end / range_.granule}, Pages::touched);
  return true;
}

void Segment::drop(const Mechanism& how) noexcept {
  const std::size_t start = begin();
  const std::size_t old = committed();
  if (old > start) os::unmap_to_reserved(range_.base + start, old - start);
  os::Descriptor file = os::open_memfd("ropewalk-fork", os::MemfdPages::normal);
  const int parents = descriptor();
  if (parents < 0) static_cast<void>(file_.release());  // the number is somebody else's
  const bool own = file && os::grow_file(file.get(), old) == 0 &&
                   (parents < 0 || dup3(file.get(), parents, O_CLOEXEC) >= 0);
  if (own && parents < 0) file_ = move_up(std::move(file));
  if (!own) file_.reset();  // never the parent's: every growth fails
  remember_file();
  range_.begin.store(old, std::memory_order_release);
  how_ = &how;
  note_pool();
  granules_.set({0, range_.reserved / range_.granule}, Pages::none);
}

}  // namespace ropewalk::memory
