// Copies of N-d blocks between two strided layouts: for packing, unpacking, and ghosts filled from
// the same field. This file knows nothing of ranks.
#pragma once

#include <array>
#include <cstddef>
#include <span>
#include <vector>

namespace ropewalk::kernels {

inline constexpr std::size_t max_copy_levels = 6;

// A shape has the extents and byte strides of a block on both sides, outermost dimension first. A
// negative stride is given as the number that it wraps around to.
struct CopyShape {
  std::span<const std::size_t> extents;
  std::span<const std::size_t> source_strides;
  std::span<const std::size_t> destination_strides;
  std::size_t element_bytes;
};

// This copy is planned once and run often. Neighbouring dimensions that are dense on both sides are
// merged, so the runs are as long as the layouts allow; `run` allocates nothing.
class StridedCopy {
 public:
  StridedCopy(const void* source, void* destination, const CopyShape& shape);

  void run() const noexcept;
  // A single run longer than `streaming_bytes` is stored around the caches; so is each part of it.
  void run(std::size_t streaming_bytes) const noexcept;
  // Appends copies that together do the same, in any order: each of about `most_bytes` at most,
  // unless one run of a strided copy is longer.
  void append_parts(std::size_t most_bytes, std::vector<StridedCopy>& out) const;
  // Calls visit(source, destination, bytes) for each run, in the order of their addresses on both
  // sides, as long as it returns true; returns whether all did.
  template <class Visit>
  bool each_run(Visit&& visit) const;
  // The source from its first byte to its last, with the gaps between runs; empty where a stride is
  // negative.
  std::span<const std::byte> source_span() const noexcept;
  // The same copy from a source that lies elsewhere, in the same layout.
  StridedCopy from(const std::byte* source) const noexcept;
  std::size_t bytes() const noexcept { return bytes_; }
  bool contiguous() const noexcept { return levels_ == 0; }  // one run on both sides
  std::size_t run_bytes() const noexcept { return run_bytes_; }

 private:
  struct Level {
    std::ptrdiff_t count;
    std::ptrdiff_t source_stride;  // may be negative, as a stride above half of the addresses
    std::ptrdiff_t destination_stride;
  };
  // Copies `level.count` runs: the innermost loop, chosen for the length of a run.
  using Row = void (*)(const std::byte* source, std::byte* destination, const Level& level,
                       std::size_t run_bytes) noexcept;

  // Calls visit(source, destination) for the first run of each row (of level_[0]), until one says
  // false. There are levels, and there are bytes.
  template <class Visit>
  bool each_row(Visit&& visit) const;
  void add_inner_to_outer(const Level& level);
  // The copy of `count` of what the outermost level repeats, or of bytes where there is no level.
  StridedCopy part(std::size_t first, std::size_t count) const;

  const std::byte* source_;
  std::byte* destination_;
  std::size_t run_bytes_;
  std::size_t bytes_;
  std::size_t single_run_ = 0;  // bytes of the one run that this is or is a part of; 0: strided
  std::size_t levels_ = 0;      // innermost first; dimensions of extent 1 are left out
  std::array<Level, max_copy_levels> level_{};
  Row row_;
};

template <class Visit>
bool StridedCopy::each_row(Visit&& visit) const {
  std::array<std::ptrdiff_t, max_copy_levels> index{};
  const std::byte* source = source_;
  std::byte* destination = destination_;
  for (;;) {
    if (!visit(source, destination)) return false;
    std::size_t l = 1;
    for (; l < levels_; ++l) {
      source += level_[l].source_stride;
      destination += level_[l].destination_stride;
      if (++index[l] < level_[l].count) break;
      source -= level_[l].source_stride * level_[l].count;
      destination -= level_[l].destination_stride * level_[l].count;
      index[l] = 0;
    }
    if (l == levels_) return true;
  }
}

template <class Visit>
bool StridedCopy::each_run(Visit&& visit) const {
  if (bytes_ == 0) return true;
  if (levels_ == 0) return visit(source_, destination_, run_bytes_);
  return each_row([&](const std::byte* source, std::byte* destination) {
    const Level& level = level_[0];
    for (std::ptrdiff_t i = 0; i < level.count; ++i) {
      if (!visit(source + i * level.source_stride, destination + i * level.destination_stride,
                 run_bytes_)) {
        return false;
      }
    }
    return true;
  });
}

}  // namespace ropewalk::kernels
