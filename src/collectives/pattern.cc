#include "collectives/pattern.hpp"

#include <algorithm>
#include <array>
#include <cstdlib>
#include <cstring>
#include <optional>
#include <utility>

#include "kernels/strided_copy.hpp"
#include "mpi/mpi.hpp"

namespace ropewalk::collectives {
namespace {

using mpi::StridedBlock;

// Elements of more blocks are packed by MPI: the list would be longer than their data are worth.
constexpr std::size_t most_blocks = 4096;
// Where a call moves more than the caches hold, runs from here on are stored past them. Against
// 4 KiB, transposes of 16 and 64 MiB with runs of 800 to 1300 bytes take 0.8 to 0.95 of the time
// (EPYC, 2 ranks).
constexpr std::size_t least_streamed = 512;

// The runs of elements, one after the other.
class Runs {
 public:
  explicit Runs(const StridedElements& elements) : elements_(elements) { begin_block(); }

  std::uintptr_t address() const noexcept { return run_ + static_cast<std::uintptr_t>(done_); }
  std::int64_t left() const noexcept { return block().run - done_; }
  void advance(std::int64_t bytes) noexcept {
    done_ += bytes;
    if (done_ == block().run) next_run();
  }

 private:
  const StridedBlock& block() const noexcept { return elements_.blocks[block_]; }
  void begin_block() noexcept {
    run_ = elements_.address +
           static_cast<std::uintptr_t>(element_ * elements_.extent + block().offset);
  }
  void next_run() noexcept {
    done_ = 0;
    for (std::size_t l = 0; l < block().levels; ++l) {
      const StridedBlock::Level& level = block().level[l];
      run_ += static_cast<std::uintptr_t>(level.stride);
      if (++index_[l] < level.count) return;
      run_ -= static_cast<std::uintptr_t>(level.stride * level.count);
      index_[l] = 0;
    }
    if (++block_ == elements_.blocks.size()) {
      block_ = 0;
      ++element_;
    }
    begin_block();
  }

  StridedElements elements_;
  std::int64_t element_ = 0;
  std::size_t block_ = 0;
  std::array<std::int64_t, StridedBlock::most_levels> index_{};
  std::uintptr_t run_ = 0;
  std::int64_t done_ = 0;  // bytes of the run
};

void copy_run_by_run(const StridedElements& from, const StridedElements& to, std::size_t bytes) {
  Runs source(from);
  Runs target(to);
  for (auto left = static_cast<std::int64_t>(bytes); left > 0;) {
    const std::int64_t now = std::min(source.left(), target.left());
    std::memcpy(reinterpret_cast<void*>(target.address()),
                reinterpret_cast<const void*>(source.address()), static_cast<std::size_t>(now));
    left -= now;
    if (left == 0) return;
    source.advance(now);
    target.advance(now);
  }
}

// All elements as one block, where they are one.
std::optional<StridedBlock> as_block(const StridedElements& elements) {
  if (elements.blocks.size() != 1) return std::nullopt;
  StridedBlock block = elements.blocks[0];
  if (!mpi::repeat(block, elements.count, elements.extent)) return std::nullopt;
  return block;
}

// Bytes of data after which the stride of a block changes: a run, the runs of the first level...
constexpr std::size_t most_cuts = 2 * (StridedBlock::most_levels + 1);
struct CutList {
  std::array<std::int64_t, most_cuts> at{};
  std::size_t count = 0;

  void add(const StridedBlock& block) {
    std::int64_t bytes = block.run;
    at[count++] = bytes;
    for (std::size_t l = 0; l < block.levels; ++l) at[count++] = bytes *= block.level[l].count;
  }
  // Sorts them; false where one is no multiple of the one before.
  bool arrange() {
    std::sort(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(count));
    auto* end = std::unique(at.begin(), at.begin() + static_cast<std::ptrdiff_t>(count));
    count = static_cast<std::size_t>(end - at.begin());
    for (std::size_t i = 1; i < count; ++i) {
      if (at[i] % at[i - 1] != 0) return false;
    }
    return true;
  }
};

// Bytes of memory between data that lie `bytes` of data apart, a cut.
std::size_t stride_at(const StridedBlock& block, std::int64_t bytes) {
  std::int64_t below = block.run;
  if (bytes < below) return static_cast<std::size_t>(bytes);
  for (std::size_t l = 0; l < block.levels; ++l) {
    const std::int64_t above = below * block.level[l].count;
    if (bytes < above) return static_cast<std::size_t>(block.level[l].stride * (bytes / below));
    below = above;
  }
  return 0;  // not reached: the last cut is no distance
}

const void* first_run(const StridedElements& elements, const StridedBlock& block) {
  return reinterpret_cast<const void*>(elements.address +
                                       static_cast<std::uintptr_t>(block.offset));
}

void run(const kernels::StridedCopy& copy, kernels::Stores stores) {
  if (stores == kernels::Stores::temporal || copy.run_bytes() < least_streamed) return copy.run();
  copy.each_run([](const std::byte* source, std::byte* target, std::size_t bytes) {
    kernels::copy(target, source, bytes, kernels::Stores::streaming);
    return true;
  });
}

// Where the runs of one side are whole numbers of the other's, level by level, both have the levels
// of both, and one loop nest copies them. False where they do not fit each other so.
bool copy_as_nest(const StridedElements& from, const StridedElements& to, kernels::Stores stores) {
  const auto source = as_block(from);
  const auto target = as_block(to);
  if (!source || !target) return false;
  CutList cuts;
  cuts.add(*source);
  cuts.add(*target);
  if (!cuts.arrange() || cuts.count > kernels::max_copy_levels + 1) return false;
  const std::size_t levels = cuts.count - 1;
  std::array<std::size_t, kernels::max_copy_levels> extents{};
  std::array<std::size_t, kernels::max_copy_levels> from_strides{};
  std::array<std::size_t, kernels::max_copy_levels> to_strides{};
  for (std::size_t l = 0; l < levels; ++l) {
    const std::size_t d = levels - 1 - l;  // outermost first
    extents[d] = static_cast<std::size_t>(cuts.at[l + 1] / cuts.at[l]);
    from_strides[d] = stride_at(*source, cuts.at[l]);
    to_strides[d] = stride_at(*target, cuts.at[l]);
  }
  const kernels::CopyShape shape{
      std::span(extents.data(), levels), std::span(from_strides.data(), levels),
      std::span(to_strides.data(), levels), static_cast<std::size_t>(cuts.at[0])};
  run({first_run(from, *source), const_cast<void*>(first_run(to, *target)), shape}, stores);
  return true;
}

void find_bounds(Pattern& pattern) {
  pattern.low = INT64_MAX;
  pattern.high = INT64_MIN;
  for (const StridedBlock& block : pattern.blocks) {
    std::int64_t low = block.offset;
    std::int64_t high = block.offset + block.run;
    for (std::size_t l = 0; l < block.levels; ++l) {
      const std::int64_t reach = block.level[l].stride * (block.level[l].count - 1);
      (reach < 0 ? low : high) += reach;
    }
    pattern.low = std::min(pattern.low, low);
    pattern.high = std::max(pattern.high, high);
  }
}

}  // namespace

Pattern pattern_of(mpi::Datatype type) {
  Pattern pattern;
  pattern.type = type;
  pattern.bytes = static_cast<std::size_t>(mpi::type_size(type));
  pattern.extent = mpi::type_extent(type).bytes;
  if (auto blocks = mpi::strided_blocks(type, most_blocks)) {
    pattern.known = true;
    pattern.blocks = std::move(*blocks);
    find_bounds(pattern);
  }
  return pattern;
}

void copy_elements(const StridedElements& from, const StridedElements& to, std::size_t bytes,
                   kernels::Stores stores) noexcept {
  if (bytes == 0 || copy_as_nest(from, to, stores)) return;
  copy_run_by_run(from, to, bytes);
}

StridedElements TypedPart::elements() const noexcept {
  if (count == 0) return {};
  return {reinterpret_cast<std::uintptr_t>(data), pattern->blocks, static_cast<std::int64_t>(count),
          pattern->extent};
}

const std::byte* TypedPart::lowest() const noexcept {
  const std::int64_t last = static_cast<std::int64_t>(count - 1) * pattern->extent;
  return reinterpret_cast<const std::byte*>(
      reinterpret_cast<std::uintptr_t>(data) +
      static_cast<std::uintptr_t>(pattern->low + std::min<std::int64_t>(last, 0)));
}

std::size_t TypedPart::span() const noexcept {
  const std::int64_t last = static_cast<std::int64_t>(count - 1) * pattern->extent;
  return static_cast<std::size_t>(pattern->high - pattern->low + std::abs(last));
}

const std::byte* TypedPart::as_run() const noexcept {
  if (bytes() == 0 || !pattern->known || pattern->blocks.size() != 1) return nullptr;
  const StridedBlock& block = pattern->blocks[0];
  const bool joined = block.levels == 0 && (count == 1 || pattern->extent == block.run);
  return joined ? lowest() : nullptr;
}

void TypedPart::pack(std::byte* to) const {
  if (bytes() == 0) return;
  if (!pattern->known) return mpi::pack(data, count, pattern->type, to, mpi::comm_self());
  const StridedBlock whole = one_run(bytes());
  copy_elements(elements(), gapless(to, whole), bytes(), kernels::Stores::temporal);
}

void TypedPart::unpack(const std::byte* from) const {
  if (bytes() == 0) return;
  void* const to = const_cast<void*>(data);
  if (!pattern->known) return mpi::unpack(from, to, count, pattern->type, mpi::comm_self());
  const StridedBlock whole = one_run(bytes());
  copy_elements(gapless(from, whole), elements(), bytes(), kernels::Stores::temporal);
}

}  // namespace ropewalk::collectives
