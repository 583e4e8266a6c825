// Random collectives and what they must give. Every rank draws the same case and knows every rank's
// elements from the seed, so expected results are computed locally, by loops that share nothing
// with the library.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ropewalk/collectives.hpp"

namespace ropewalk::test {

enum class Collective {
  barrier,
  allreduce,
  reduce,
  scan,
  exscan,
  reduce_scatter,
  reduce_scatter_block,
  broadcast,
  allgather,
  allgatherv,
  gather,
  gatherv,
  scatter,
  scatterv,
  alltoall,
  alltoallv
};
constexpr int collective_count = 16;

struct Case {
  Collective collective = Collective::barrier;
  ElementType type = ElementType::int32;
  ReductionOp op = ReductionOp::sum;
  std::size_t count = 0;  // elements, or elements of each block
  int root = 0;
  bool in_place = false;
  bool nonblocking = false;
  std::uint32_t send_in_arena = 0;     // a bit a rank
  std::uint32_t receive_in_arena = 0;  // a bit a rank
  std::size_t skew = 0;                // bytes that buffers are off their alignment by
  std::vector<std::size_t> counts;     // elements of a block, by rank (v forms)
  std::uint64_t seed = 0;

  std::string text() const;
};

struct Bounds {
  std::size_t count = 40000;  // elements; some draws go far below
};
Case draw(std::mt19937_64& random, int ranks, const Bounds& bounds);

// Runs the case on this rank. Returns "" when the receive buffer holds what it must, guards around
// it included, and a description of the first difference otherwise.
std::string run(Collectives& communicator, const Case& drawn);

}  // namespace ropewalk::test
