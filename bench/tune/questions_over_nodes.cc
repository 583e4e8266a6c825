// What is searched between nodes, and the ways whose costs are measured there.
#include "tune/questions.hpp"

namespace ropewalk::bench {

using tuning::Id;

namespace {

std::vector<Question> of_vectors() {
  return {
      {.id = Id::nodes_flat,
       .over_nodes = true,
       .from_on = true,
       .below = "nodes.flat_bytes = 1T\n",
       .above = "nodes.flat_bytes = 0\nnodes.ring_bytes = 1T\n",
       .down = 4,
       .up = 2,
       .calls = {{Op::allreduce}}},
      {.id = Id::nodes_ring,
       .over_nodes = true,
       .from_on = true,
       .below = "nodes.flat_bytes = 0\nnodes.ring_bytes = 1T\n",
       .above = "nodes.flat_bytes = 0\nnodes.ring_bytes = 0\n",
       .down = 3,
       .up = 3,
       .calls = {{Op::allreduce}}},
      {.id = Id::nodes_chain,
       .over_nodes = true,
       .from_on = true,
       .below = "nodes.chain_bytes = 1T\n",
       .above = "nodes.chain_bytes = 0\n",
       .down = 3,
       .up = 3,
       .calls = {{Op::reduce}}},
      {.id = Id::nodes_broadcast_flat,
       .over_nodes = true,
       .from_on = true,
       .below = "nodes.broadcast_flat_bytes = 1T\nnodes.broadcast_chain_bytes = 1T\n",
       .above = "nodes.broadcast_flat_bytes = 0\nnodes.broadcast_chain_bytes = 1T\n",
       .down = 3,
       .up = 2,
       .calls = {{Op::bcast}}},
      {.id = Id::nodes_broadcast_chain,
       .over_nodes = true,
       .from_on = true,
       .below = "nodes.broadcast_flat_bytes = 0\nnodes.broadcast_chain_bytes = 1T\n",
       .above = "nodes.broadcast_flat_bytes = 0\nnodes.broadcast_chain_bytes = 0\n",
       .down = 0,
       .up = 5,
       .calls = {{Op::bcast}}},
  };
}

std::vector<Question> of_blocks() {
  return {
      {.id = Id::nodes_allgather,
       .over_nodes = true,
       .from_on = true,
       .below = "nodes.allgather_bytes = 1T\n",
       .above = "nodes.allgather_bytes = 0\n",
       .down = 4,
       .up = 2,
       .calls = {{Op::allgather, Amount::all_blocks}}},
      {.id = Id::nodes_reduce_scatter,
       .over_nodes = true,
       .from_on = true,
       .below = "nodes.reduce_scatter_bytes = 1T\n",
       .above = "nodes.reduce_scatter_bytes = 0\n",
       .down = 4,
       .up = 2,
       .calls = {{Op::reduce_scatter}}},
      {.id = Id::nodes_alltoall,
       .over_nodes = true,
       .below = "nodes.alltoall_bytes = 1T\n",
       .above = "nodes.alltoall_bytes = 0\n",
       .down = 4,
       .up = 3,
       .calls = {{Op::alltoall}}},
      {.id = Id::nodes_gather,
       .over_nodes = true,
       .from_on = true,
       .below = "nodes.gather_bytes = 1T\n",
       .above = "nodes.gather_bytes = 0\n",
       .down = 3,
       .up = 3,
       .calls = {{Op::gather}}},
      {.id = Id::nodes_scatter,
       .over_nodes = true,
       .from_on = true,
       .below = "nodes.scatter_bytes = 1T\n",
       .above = "nodes.scatter_bytes = 0\n",
       .down = 4,
       .up = 2,
       .calls = {{Op::scatter}}},
  };
}

}  // namespace

const std::vector<Question>& questions_over_nodes() {
  static const std::vector<Question> all = [] {
    std::vector<Question> made = of_vectors();
    const std::vector<Question> more = of_blocks();
    made.insert(made.end(), more.begin(), more.end());
    return made;
  }();
  return all;
}

const std::vector<ForcedAlgorithm>& forced_over_nodes() {
  static const std::vector<ForcedAlgorithm> all = {
      {Op::allreduce, "flat", "nodes.flat_bytes = 1T\n"},
      {Op::allreduce, "mpi", "nodes.flat_bytes = 0\nnodes.ring_bytes = 1T\n"},
      {Op::allreduce, "ring", "nodes.flat_bytes = 0\nnodes.ring_bytes = 0\n"},
      {Op::reduce, "whole", "nodes.chain_bytes = 1T\n"},
      {Op::reduce, "chain", "nodes.chain_bytes = 0\n"},
      {Op::bcast, "flat", "nodes.broadcast_flat_bytes = 1T\nnodes.broadcast_chain_bytes = 1T\n"},
      {Op::bcast, "tree", "nodes.broadcast_flat_bytes = 0\nnodes.broadcast_chain_bytes = 1T\n"},
      {Op::bcast, "chain", "nodes.broadcast_chain_bytes = 0\n"},
      {Op::allgather, "whole", "nodes.allgather_bytes = 1T\n"},
      {Op::allgather, "leaders", "nodes.allgather_bytes = 0\nnodes.allgather_leaders_bytes = 1T\n"},
      {Op::allgather, "slices", "nodes.allgather_bytes = 0\nnodes.allgather_leaders_bytes = 0\n"},
      {Op::reduce_scatter, "whole", "nodes.reduce_scatter_bytes = 1T\n"},
      {Op::reduce_scatter, "chunks", "nodes.reduce_scatter_bytes = 0\n"},
      {Op::alltoall, "whole", "nodes.alltoall_bytes = 0\n"},
      {Op::alltoall, "together", "nodes.alltoall_bytes = 1T\n"},
      {Op::alltoall, "each",
       "nodes.alltoall_bytes = 1T\nnodes.alltoall_together_block_bytes = 0\n"},
      {Op::gather, "whole", "nodes.gather_bytes = 1T\n"},
      {Op::gather, "rooted", "nodes.gather_bytes = 0\n"},
      {Op::scatter, "whole", "nodes.scatter_bytes = 1T\n"},
      {Op::scatter, "rooted", "nodes.scatter_bytes = 0\n"},
  };
  return all;
}

}  // namespace ropewalk::bench
