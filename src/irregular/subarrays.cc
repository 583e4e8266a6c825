#include "irregular/subarrays.hpp"

#include <algorithm>
#include <span>

#include "irregular/checks.hpp"
#include "kernels/strided_copy.hpp"

namespace ropewalk::irregular {
namespace {

static_assert(SubarrayExchange::max_dimensions <= kernels::max_copy_levels);

bool is_empty(const Subarray& part) {
  return part.extents.empty() || std::ranges::find(part.extents, 0U) != part.extents.end();
}

// Returns the bytes from the beginning of the array to the end of the part; false where that is
// more than an address holds.
bool find_end(const Subarray& part, std::size_t element_bytes, std::size_t& end) {
  bool is_too_large = __builtin_add_overflow(part.offset, element_bytes, &end);
  for (std::size_t d = 0; d < part.extents.size(); ++d) {
    std::size_t length = 0;
    is_too_large |= __builtin_mul_overflow(part.extents[d] - 1, part.strides[d], &length);
    is_too_large |= __builtin_add_overflow(end, length, &end);
  }
  return !is_too_large;
}

void check_part(const std::string& name, const Subarray& part, std::size_t bytes,
                std::size_t element_bytes) {
  if (part.extents.size() > SubarrayExchange::max_dimensions) {
    refuse(name + ".extents: " + std::to_string(part.extents.size()) +
           " dimensions, expected at most " + std::to_string(SubarrayExchange::max_dimensions));
  }
  if (part.strides.size() != part.extents.size()) {
    refuse(name + ".strides: " + std::to_string(part.strides.size()) +
           ", expected one for each of " + std::to_string(part.extents.size()) + " dimensions");
  }
  std::size_t end = 0;
  if (is_empty(part) || (find_end(part, element_bytes, end) && end <= bytes)) return;
  refuse(name + ": ends outside of the array of " + std::to_string(bytes) +
         " bytes; pass offsets, extents and strides of elements inside of it");
}

std::string text_of(const std::uint64_t* extents, std::uint64_t dimensions) {
  std::string text = dimensions == 0 ? "no elements" : "";
  for (std::uint64_t d = 0; d < dimensions; ++d) {
    text += (d == 0 ? "" : " x ") + std::to_string(extents[d]);
  }
  return text;
}

}  // namespace

Description describe(std::size_t element_bytes, const Subarray& sent, const Subarray& received) {
  Description made;
  made.element_bytes = element_bytes;
  if (!is_empty(sent)) {
    made.sent_dimensions = sent.extents.size();
    std::ranges::copy(sent.extents, made.sent_extents);
  }
  if (!is_empty(received)) {
    made.offset = received.offset;
    made.dimensions = received.extents.size();
    std::ranges::copy(received.extents, made.extents);
    std::ranges::copy(received.strides, made.strides);
  }
  return made;
}

Subarray received_there(const Description& told) {
  return {told.offset,
          {told.extents, told.extents + told.dimensions},
          {told.strides, told.strides + told.dimensions}};
}

std::size_t bytes_of(const Subarray& part, std::size_t element_bytes) {
  if (is_empty(part)) return 0;
  std::size_t bytes = element_bytes;
  for (const std::size_t extent : part.extents) bytes *= extent;
  return bytes;
}

Subarray packed(const Subarray& part, std::size_t element_bytes) {
  Subarray made{0, part.extents, part.extents};
  std::size_t stride = element_bytes;
  for (std::size_t d = part.extents.size(); d-- > 0;) {
    made.strides[d] = stride;
    stride *= part.extents[d];
  }
  return made;
}

void copy_part(const void* from, const Subarray& source, void* to, const Subarray& destination,
               std::size_t element_bytes) {
  if (is_empty(source)) return;
  const kernels::CopyShape shape{source.extents, source.strides, destination.strides,
                                 element_bytes};
  kernels::StridedCopy(static_cast<const std::byte*>(from) + source.offset,
                       static_cast<std::byte*>(to) + destination.offset, shape)
      .run();
}

void check_parts(const std::string& name, const ArrayParts& array, std::size_t ranks,
                 std::size_t element_bytes) {
  if (element_bytes == 0) refuse("element_bytes: 0, expected 1 or more; pass the element's size");
  if (array.parts.size() != ranks) {
    refuse(name + ".parts: " + std::to_string(array.parts.size()) + ", expected one for each of " +
           std::to_string(ranks) + " ranks; leave those empty that have no elements");
  }
  for (std::size_t i = 0; i < ranks; ++i) {
    check_part(name + ".parts[" + std::to_string(i) + "]", array.parts[i], array.bytes,
               element_bytes);
  }
}

void check_descriptions(const std::vector<Description>& own, const std::vector<Description>& theirs,
                        int rank) {
  for (std::size_t peer = 0; peer < own.size(); ++peer) {
    const Description& here = own[peer];
    const Description& there = theirs[peer];
    if (here.element_bytes != there.element_bytes) {
      refuse("element_bytes: " + std::to_string(here.element_bytes) + " on rank " +
             std::to_string(rank) + ", " + std::to_string(there.element_bytes) + " on rank " +
             std::to_string(peer) + "; expected the same on all ranks");
    }
    if (std::ranges::equal(std::span(here.extents, here.dimensions),
                           std::span(there.sent_extents, there.sent_dimensions))) {
      continue;
    }
    refuse("parts: rank " + std::to_string(peer) + " sends " +
           text_of(there.sent_extents, there.sent_dimensions) + " to rank " + std::to_string(rank) +
           ", which expects " + text_of(here.extents, here.dimensions) +
           "; both must have the same extents");
  }
}

}  // namespace ropewalk::irregular
