// Which tensors are reduced together: a function of their counts and types, and of sizes that all
// ranks share. Knows no ranks and takes no memory.
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ropewalk/reduction_plan.hpp"

namespace ropewalk::reduction {

// A piece says where a tensor lies in the vector of its bucket.
struct Piece {
  int tensor;
  std::size_t offset;  // elements
};

struct Bucket {
  ElementType type;
  bool fused;
  std::size_t count;  // elements, gaps between fused tensors included
  std::vector<Piece> pieces;
};

// Fused tensors begin on cache lines of their own.
constexpr std::size_t piece_alignment = 128;

// Throws Error(argument) for a tensor or sizes that cannot be.
std::vector<Bucket> buckets_of(std::span<const PlanTensor> tensors, std::size_t bucket_bytes,
                               std::size_t fuse_bytes);

}  // namespace ropewalk::reduction
