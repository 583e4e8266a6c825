// Collectives that the hierarchy does not serve: MPI's own, on the whole communicator.
#include <vector>

#include "collectives/nodes/algorithms.hpp"
#include "collectives/through_mpi.hpp"

namespace ropewalk::collectives::nodes {

void scan(NodeCommunicator::State& state, const void* send, void* receive, std::size_t count,
          const Operation& operation, bool exclusive) {
  mpi_scan(state, send, receive, count, operation, exclusive);
}

void reduce_scatter(NodeCommunicator::State& state, const void* send, void* receive,
                    const std::size_t* counts, const Operation& operation) {
  mpi_reduce_scatter(state, send, receive, counts, operation);
}

void barrier(NodeCommunicator::State& state) {
  state.nodes->path = Path::mpi;
  mpi::barrier(state.comm);
}

void broadcast(NodeCommunicator::State& state, void* data, std::size_t bytes, int root) {
  mpi_broadcast(state, data, bytes, root);
}

void allgather(NodeCommunicator::State& state, const void* send, void* receive,
               const Blocks& blocks) {
  mpi_allgatherv(state, send, blocks.counts[state.rank], receive, blocks.counts,
                 blocks.displacements);
}

void gather(NodeCommunicator::State& state, const void* send, std::size_t bytes, void* receive,
            const Blocks& blocks, int root) {
  mpi_gatherv(state, send, bytes, receive, blocks.counts, blocks.displacements, root);
}

void scatter(NodeCommunicator::State& state, const void* send, const Blocks& blocks, void* receive,
             std::size_t bytes, int root) {
  mpi_scatterv(state, send, blocks.counts, blocks.displacements, receive, bytes, root);
}

void alltoall(NodeCommunicator::State& state, const void* send, void* receive,
              std::size_t bytes_each) {
  const auto ranks = static_cast<std::size_t>(state.size);
  const std::vector<std::size_t> counts(ranks, bytes_each);
  std::vector<std::size_t> displacements;
  for (std::size_t peer = 0; peer < ranks; ++peer) displacements.push_back(peer * bytes_each);
  mpi_alltoallv(state, send, counts.data(), displacements.data(), receive, counts.data(),
                displacements.data());
}

void alltoallv(NodeCommunicator::State& state, const void* send, const Blocks& sends, void* receive,
               const Blocks& receives) {
  mpi_alltoallv(state, send, sends.counts, sends.displacements, receive, receives.counts,
                receives.displacements);
}

}  // namespace ropewalk::collectives::nodes
