// The merging of dimensions and the copy loops.
#include "kernels/strided_copy.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/kernels.hpp"

namespace ropewalk::kernels {

namespace {

// Runs of a length known to the compiler become plain moves; a call of memcpy for each 8 bytes
// would cost several times the copy itself.
template <std::size_t Bytes, class Level>
void fixed_row(const std::byte* source, std::byte* destination, const Level& level,
               std::size_t) noexcept {
  for (std::ptrdiff_t i = 0; i < level.count; ++i) {
    std::memcpy(destination + i * level.destination_stride, source + i * level.source_stride,
                Bytes);
  }
}

template <class Level>
void any_row(const std::byte* source, std::byte* destination, const Level& level,
             std::size_t run_bytes) noexcept {
  for (std::ptrdiff_t i = 0; i < level.count; ++i) {
    std::memcpy(destination + i * level.destination_stride, source + i * level.source_stride,
                run_bytes);
  }
}

// Runs of this length and more are left to the copies of the kernels, which mind where they lie.
constexpr std::size_t long_run_bytes = 2048;

template <class Level>
void long_row(const std::byte* source, std::byte* destination, const Level& level,
              std::size_t run_bytes) noexcept {
  for (std::ptrdiff_t i = 0; i < level.count; ++i) {
    copy(destination + i * level.destination_stride, source + i * level.source_stride, run_bytes,
         Stores::temporal);
  }
}

template <class Level>
auto row_for(std::size_t run_bytes) {
  switch (run_bytes) {
    case 1:
      return &fixed_row<1, Level>;
    case 2:
      return &fixed_row<2, Level>;
    case 4:
      return &fixed_row<4, Level>;
    case 8:
      return &fixed_row<8, Level>;
    case 16:
      return &fixed_row<16, Level>;
    case 24:
      return &fixed_row<24, Level>;
    case 32:
      return &fixed_row<32, Level>;
    case 64:
      return &fixed_row<64, Level>;
    default:
      return run_bytes < long_run_bytes ? &any_row<Level> : &long_row<Level>;
  }
}

}  // namespace

StridedCopy::StridedCopy(const void* source, void* destination, const CopyShape& shape)
    : source_(static_cast<const std::byte*>(source)),
      destination_(static_cast<std::byte*>(destination)),
      run_bytes_(shape.element_bytes),
      bytes_(shape.element_bytes) {
  for (std::size_t d = shape.extents.size(); d-- > 0;) {
    bytes_ *= shape.extents[d];
    add_inner_to_outer({static_cast<std::ptrdiff_t>(shape.extents[d]),
                        static_cast<std::ptrdiff_t>(shape.source_strides[d]),
                        static_cast<std::ptrdiff_t>(shape.destination_strides[d])});
  }
  row_ = row_for<Level>(run_bytes_);
  if (levels_ == 0) single_run_ = run_bytes_;
}

void StridedCopy::add_inner_to_outer(const Level& level) {
  const auto run = static_cast<std::ptrdiff_t>(run_bytes_);
  if (level.count == 1) return;
  if (levels_ == 0) {
    if (level.source_stride == run && level.destination_stride == run) {
      run_bytes_ *= static_cast<std::size_t>(level.count);
      return;
    }
  } else {
    Level& inner = level_[levels_ - 1];
    if (level.source_stride == inner.source_stride * inner.count &&
        level.destination_stride == inner.destination_stride * inner.count) {
      inner.count *= level.count;
      return;
    }
  }
  level_[levels_++] = level;
}

void StridedCopy::run() const noexcept {
  if (bytes_ == 0) return;
  if (levels_ == 0) {
    if (run_bytes_ >= long_run_bytes) {
      copy(destination_, source_, run_bytes_, Stores::temporal);
    } else {
      std::memcpy(destination_, source_, run_bytes_);
    }
    return;
  }
  each_row([this](const std::byte* source, std::byte* destination) {
    row_(source, destination, level_[0], run_bytes_);
    return true;
  });
}

void StridedCopy::run(std::size_t streaming_bytes) const noexcept {
  if (single_run_ == 0 || bytes_ == 0) return run();
  const bool large = single_run_ > streaming_bytes;
  copy(destination_, source_, run_bytes_, large ? Stores::streaming : Stores::temporal);
}

std::span<const std::byte> StridedCopy::source_span() const noexcept {
  if (bytes_ == 0) return {};
  std::size_t length = run_bytes_;
  for (std::size_t l = 0; l < levels_; ++l) {
    if (level_[l].source_stride < 0) return {};
    length += static_cast<std::size_t>((level_[l].count - 1) * level_[l].source_stride);
  }
  return {source_, length};
}

StridedCopy StridedCopy::from(const std::byte* source) const noexcept {
  StridedCopy out = *this;
  out.source_ = source;
  return out;
}

StridedCopy StridedCopy::part(std::size_t first, std::size_t count) const {
  StridedCopy out = *this;
  if (levels_ == 0) {
    out.source_ += first;
    out.destination_ += first;
    out.run_bytes_ = out.bytes_ = count;
    return out;
  }
  Level& outer = out.level_[levels_ - 1];
  out.source_ += static_cast<std::ptrdiff_t>(first) * outer.source_stride;
  out.destination_ += static_cast<std::ptrdiff_t>(first) * outer.destination_stride;
  out.bytes_ = bytes_ / static_cast<std::size_t>(outer.count) * count;
  outer.count = static_cast<std::ptrdiff_t>(count);
  if (count == 1) --out.levels_;
  return out;
}

void StridedCopy::append_parts(std::size_t most_bytes, std::vector<StridedCopy>& out) const {
  const bool whole = bytes_ <= most_bytes || (levels_ == 0 && single_run_ == 0);
  if (whole) return out.push_back(*this);
  constexpr std::size_t line = 64;  // bytes: parts of a run share no cache line if it begins at one
  const std::size_t count =
      levels_ == 0 ? bytes_ : static_cast<std::size_t>(level_[levels_ - 1].count);
  const std::size_t each = bytes_ / count;
  std::size_t step = std::max<std::size_t>(1, most_bytes / each);
  if (levels_ == 0) step = std::max(line, step / line * line);
  for (std::size_t first = 0; first < count; first += step) {
    const StridedCopy next = part(first, std::min(step, count - first));
    each > most_bytes ? next.append_parts(most_bytes, out) : out.push_back(next);
  }
}

}  // namespace ropewalk::kernels
