// Elements of an array in the order in which they travel.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "ropewalk/types.hpp"

namespace ropewalk::irregular {

class IndexList {
 public:
  IndexList() = default;
  // The indices are 0 or more.
  IndexList(std::span<const std::int64_t> indices, std::size_t element_bytes);

  std::size_t bytes() const noexcept { return bytes_; }
  // Both take memory for bytes().
  void gather(const std::byte* array, std::byte* packed) const noexcept;
  void scatter(const std::byte* packed, std::byte* array) const noexcept;
  // Each element becomes (element op packed one), in the order of the list. `scratch` has bytes().
  void combine(std::byte* array, const std::byte* packed, std::byte* scratch, ElementType,
               ReductionOp) const;

 private:
  // Elements that lie one behind the other are one run.
  struct Run {
    std::size_t offset;  // in bytes
    std::size_t bytes;
  };

  std::vector<Run> runs_;
  std::size_t bytes_ = 0;
  std::size_t element_bytes_ = 0;
  // All runs are single elements, which have a loop of their own.
  bool is_scattered_ = false;
  bool has_duplicates_ = false;
};

}  // namespace ropewalk::irregular
