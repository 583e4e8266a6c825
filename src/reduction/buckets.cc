#include "reduction/buckets.hpp"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string>

namespace ropewalk::reduction {
namespace {

void check_tensor(const PlanTensor& tensor, std::size_t index) {
  const std::string name = "tensors: number " + std::to_string(index);
  const std::size_t element = size_of(tensor.type);
  if (element == 0) {
    throw Error(ErrorCode::argument, name + " has type " +
                                         std::to_string(static_cast<int>(tensor.type)) +
                                         ", expected an ElementType");
  }
  if (tensor.count > static_cast<std::size_t>(PTRDIFF_MAX) / element) {
    throw Error(ErrorCode::argument, name + " has " + std::to_string(tensor.count) +
                                         " elements, more than any memory holds");
  }
}

// In elements; 128 is a multiple of the size of every type but pairs with gaps, which begin
// anywhere.
std::size_t aligned(std::size_t count, std::size_t element) {
  const std::size_t grain = std::max<std::size_t>(1, piece_alignment / element);
  return (count + grain - 1) / grain * grain;
}

}  // namespace

std::vector<Bucket> buckets_of(std::span<const PlanTensor> tensors, std::size_t bucket_bytes,
                               std::size_t fuse_bytes) {
  std::vector<Bucket> buckets;
  std::array<int, element_type_count> open{};  // bucket of a type that is being filled
  open.fill(-1);
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    check_tensor(tensors[i], i);
    const auto [count, type, input, output] = tensors[i];
    const std::size_t element = size_of(type);
    const Piece alone{static_cast<int>(i), 0};
    if (count * element > std::min(fuse_bytes, bucket_bytes)) {
      buckets.push_back({type, false, count, {alone}});
      continue;
    }
    int& current = open[static_cast<std::size_t>(type)];
    if (current >= 0) {
      Bucket& bucket = buckets[static_cast<std::size_t>(current)];
      const std::size_t offset = aligned(bucket.count, element);
      if ((offset + count) * element <= bucket_bytes) {
        bucket.pieces.push_back({static_cast<int>(i), offset});
        bucket.count = offset + count;
        continue;
      }
    }
    current = static_cast<int>(buckets.size());
    buckets.push_back({type, true, count, {alone}});
  }
  // A bucket is ready when its last tensor is.
  std::ranges::stable_sort(buckets, {}, [](const Bucket& one) { return one.pieces.back().tensor; });
  return buckets;
}

}  // namespace ropewalk::reduction
