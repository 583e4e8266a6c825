// Random plans, and what they must give. Every rank draws the same case and knows every rank's
// elements from the seed; expected results come from loops over single elements.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ropewalk/reduction_plan.hpp"

namespace ropewalk::test {

struct PlanCase {
  struct Vector {
    std::size_t count;
    ElementType type;
    enum class Where { plan, in_place, apart } where;
    bool in_arena;
  };
  std::vector<Vector> vectors;
  ReductionPlanOptions options;
  enum class Manner { reduce, start, buckets_reversed, ready } manner = Manner::reduce;
  int rounds = 2;
  std::uint64_t seed = 0;

  std::string text() const;
};

PlanCase draw_plan(std::mt19937_64& random);

// "" where all results are right on this rank, in every round: on one node to the bit (sums of
// 16-bit types are made in float32 and rounded once), otherwise within the rounding of a sum that
// is rounded after each step.
std::string run_plan(Communicator, const PlanCase& drawn);

}  // namespace ropewalk::test
