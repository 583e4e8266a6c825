// Parts of arrays: their checks, what ranks tell each other of them, and copies between two of
// them.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "ropewalk/subarray_exchange.hpp"

namespace ropewalk::irregular {

// What a rank tells another of the parts that the two exchange.
struct Description {
  static constexpr std::size_t most = SubarrayExchange::max_dimensions;
  std::uint64_t element_bytes = 0;
  std::uint64_t sent_dimensions = 0;
  std::uint64_t sent_extents[most] = {};
  std::uint64_t offset = 0;  // of the part that it receives
  std::uint64_t dimensions = 0;
  std::uint64_t extents[most] = {};
  std::uint64_t strides[most] = {};
};
Description describe(std::size_t element_bytes, const Subarray& sent, const Subarray& received);
Subarray received_there(const Description&);

std::size_t bytes_of(const Subarray&, std::size_t element_bytes);
// The same elements one behind the other.
Subarray packed(const Subarray&, std::size_t element_bytes);
// Both have the same extents. Allocates nothing.
void copy_part(const void* from, const Subarray& source, void* to, const Subarray& destination,
               std::size_t element_bytes);

// Throws Error(argument). `name` is that of the argument.
void check_parts(const std::string& name, const ArrayParts&, std::size_t ranks,
                 std::size_t element_bytes);
// `own` and `theirs` have one entry for each rank: what this rank tells it, and what it tells.
void check_descriptions(const std::vector<Description>& own, const std::vector<Description>& theirs,
                        int rank);

}  // namespace ropewalk::irregular
