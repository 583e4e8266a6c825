// The merging of dimensions and the copy loops.
#include "kernels/strided_copy.hpp"

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
      return &any_row<Level>;
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
    std::memcpy(destination_, source_, run_bytes_);
    return;
  }
  each_row([this](const std::byte* source, std::byte* destination) {
    row_(source, destination, level_[0], run_bytes_);
    return true;
  });
}

void StridedCopy::run(std::size_t streaming_bytes) const noexcept {
  if (levels_ > 0 || bytes_ == 0) return run();
  const bool large = run_bytes_ > streaming_bytes;
  copy(destination_, source_, run_bytes_, large ? Stores::streaming : Stores::temporal);
}

}  // namespace ropewalk::kernels
