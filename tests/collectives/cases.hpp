// Random collectives through the C++ interface. Every rank draws the same case and knows every
// rank's elements from the seed, so expected results are computed locally, by loops.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>

#include "generator/cases.hpp"
#include "ropewalk/collectives.hpp"

namespace ropewalk::test {

using generator::Case;
using generator::Collective;
using generator::Operation;
constexpr int collective_count = generator::collectives;

struct Bounds {
  std::size_t bytes = 256 << 10;  // of a rank's buffer or block; most draws go far below
  unsigned large_percent = 25;    // of cases above a quarter of it
  bool only_integers = false;     // whose sums do not depend on the order
};
Case draw(std::mt19937_64& random, const Bounds& = {});
void set_type(Case&, ElementType);  // an integer, float32 or float64

std::string text(const Case&, const Collectives&);

// Runs the case on this rank. Returns "" when the receive buffer holds what it must, guards around
// both included, and a description of the first difference otherwise.
std::string run(Collectives& communicator, const Case& drawn);

}  // namespace ropewalk::test
