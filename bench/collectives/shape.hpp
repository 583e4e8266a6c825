// What each collective moves: elements of the buffers, bytes of the limit, and how often a sample
// repeats it. Pure arithmetic.
//
// `bytes` is what OSU's benchmarks call the size: of the vector for allreduce, reduce, bcast and
// reduce_scatter (the whole one, dealt to the ranks), of one block for allgather, gather, scatter
// and alltoall. The root is rank 0. The forms ending in v get equal blocks, too: what they know
// less is what they are measured for.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace ropewalk::bench {

enum class Op {
  barrier,
  allreduce,
  reduce,
  bcast,
  allgather,
  alltoall,
  gather,
  scatter,
  reduce_scatter,
  allgatherv,
  alltoallv,
  gatherv,
  scatterv
};
const std::vector<std::string>& op_names();  // in the order of Op
const std::string& name(Op op);
Op op_of(const std::string& name);  // one of op_names()
Op without_counts(Op op);           // allgatherv: allgather; the others: themselves

struct CallShape {
  Op op = Op::barrier;
  std::size_t bytes = 0;  // a multiple of 4: float elements
  int ranks = 1;
  int rank = 0;

  std::size_t count() const { return bytes / sizeof(float); }
  // Elements of the send buffer that this rank fills; 0 where it sends nothing.
  std::size_t send_count() const;
  // Elements that this rank gets; 0 where it gets nothing.
  std::size_t receive_count() const;
  // Half-open range of elements of a vector of count() elements that is `part`'s share.
  std::size_t part_begin(int part) const;
};

// Bytes that all ranks together load and store when each input is read once for each rank that
// must have it, and each output is written once: what limit_us is the time of.
struct TrafficBytes {
  std::size_t loaded = 0;
  std::size_t stored = 0;
};
TrafficBytes traffic(Op op, std::size_t bytes, int ranks);

// Returns the bytes that cross the busiest link between a node and the network, in its busier
// direction, by any algorithm: what the limit over nodes is the time of. A node's data that others
// need leave it once, and what its ranks need enters it once; an allreduce moves 2 (N - 1)/N of its
// vector (Patarasuk and Yuan 2009). `ranks_on`: of each node, the root's first.
double link_bytes(Op op, std::size_t bytes, const std::vector<int>& ranks_on);

constexpr std::size_t least_limit_bytes = 16384;  // below, flags and not bytes take the time

// Calls in a sample that is to last `sample_us` when one call takes `call_us`: at least one.
int iterations_for(double call_us, double sample_us);

}  // namespace ropewalk::bench
