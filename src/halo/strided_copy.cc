// The merging of dimensions and the copy loops.
#include "halo/strided_copy.hpp"

#include <cstring>

#include "kernels/kernels.hpp"

namespace ropewalk::halo {

namespace {

// Runs of a length known to the compiler become plain moves; a call of memcpy for each 8 bytes
// would cost several times the copy itself.
template <std::size_t Bytes, class Level>
void fixed_row(const std::byte* source, std::byte* destination, const Level& level,
               std::size_t) noexcept {
  for (std::size_t i = 0; i < level.count; ++i) {
    std::memcpy(destination + i * level.destination_stride, source + i * level.source_stride,
                Bytes);
  }
}

template <class Level>
void any_row(const std::byte* source, std::byte* destination, const Level& level,
             std::size_t run_bytes) noexcept {
  for (std::size_t i = 0; i < level.count; ++i) {
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
    add_inner_to_outer(shape.extents[d], shape.source_strides[d], shape.destination_strides[d]);
  }
  row_ = row_for<Level>(run_bytes_);
}

void StridedCopy::add_inner_to_outer(std::size_t count, std::size_t source_stride,
                                     std::size_t destination_stride) {
  if (count == 1) return;
  if (levels_ == 0) {
    if (source_stride == run_bytes_ && destination_stride == run_bytes_) {
      run_bytes_ *= count;
      return;
    }
  } else {
    Level& inner = level_[levels_ - 1];
    if (source_stride == inner.source_stride * inner.count &&
        destination_stride == inner.destination_stride * inner.count) {
      inner.count *= count;
      return;
    }
  }
  level_[levels_++] = {count, source_stride, destination_stride};
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
  kernels::copy(destination_, source_, run_bytes_,
                large ? kernels::Stores::streaming : kernels::Stores::temporal);
}

}  // namespace ropewalk::halo
