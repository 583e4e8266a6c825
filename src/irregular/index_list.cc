#include "irregular/index_list.hpp"

#include <algorithm>
#include <cstring>

#include "kernels/kernels.hpp"

namespace ropewalk::irregular {
namespace {

// A copy of a length that the compiler knows is one load and one store.
template <std::size_t bytes>
void copy_fixed(void* to, const void* from) noexcept {
  std::memcpy(to, from, bytes);
}

// Calls `each` with a function that copies one run of this length.
template <class Each>
void with_copy(std::size_t element_bytes, bool is_scattered, Each&& each) noexcept {
  if (is_scattered && element_bytes == 4) {
    each([](void* to, const void* from, std::size_t) { copy_fixed<4>(to, from); });
  } else if (is_scattered && element_bytes == 8) {
    each([](void* to, const void* from, std::size_t) { copy_fixed<8>(to, from); });
  } else if (is_scattered && element_bytes == 16) {
    each([](void* to, const void* from, std::size_t) { copy_fixed<16>(to, from); });
  } else {
    each([](void* to, const void* from, std::size_t bytes) { std::memcpy(to, from, bytes); });
  }
}

bool repeats(std::span<const std::int64_t> indices) {
  std::vector<std::int64_t> sorted(indices.begin(), indices.end());
  std::sort(sorted.begin(), sorted.end());
  return std::adjacent_find(sorted.begin(), sorted.end()) != sorted.end();
}

}  // namespace

IndexList::IndexList(std::span<const std::int64_t> indices, std::size_t element_bytes)
    : bytes_(indices.size() * element_bytes),
      element_bytes_(element_bytes),
      has_duplicates_(repeats(indices)) {
  for (const std::int64_t index : indices) {
    const std::size_t offset = static_cast<std::size_t>(index) * element_bytes;
    if (!runs_.empty() && runs_.back().offset + runs_.back().bytes == offset) {
      runs_.back().bytes += element_bytes;
    } else {
      runs_.push_back({offset, element_bytes});
    }
  }
  is_scattered_ = runs_.size() == indices.size();
}

void IndexList::gather(const std::byte* array, std::byte* packed) const noexcept {
  with_copy(element_bytes_, is_scattered_, [&](auto copy) {
    std::byte* to = packed;
    for (const Run& run : runs_) {
      copy(to, array + run.offset, run.bytes);
      to += run.bytes;
    }
  });
}

void IndexList::scatter(const std::byte* packed, std::byte* array) const noexcept {
  with_copy(element_bytes_, is_scattered_, [&](auto copy) {
    const std::byte* from = packed;
    for (const Run& run : runs_) {
      copy(array + run.offset, from, run.bytes);
      from += run.bytes;
    }
  });
}

void IndexList::combine(std::byte* array, const std::byte* packed, std::byte* scratch,
                        ElementType type, ReductionOp op) const {
  if (bytes_ == 0) return;
  const kernels::ReduceFunction reduce = kernels::find(type, op);
  const auto apply = [&](std::byte* elements, const std::byte* values, std::size_t bytes) {
    void* out = elements;
    const void* in[] = {elements, values};
    reduce(&out, 1, in, 2, bytes / size_of(type), kernels::Stores::temporal);
  };
  if (!has_duplicates_) {  // one call of the kernel for all
    gather(array, scratch);
    apply(scratch, packed, bytes_);
    return scatter(scratch, array);
  }
  for (const Run& run : runs_) {  // indices within a run are unlike
    apply(array + run.offset, packed, run.bytes);
    packed += run.bytes;
  }
}

}  // namespace ropewalk::irregular
