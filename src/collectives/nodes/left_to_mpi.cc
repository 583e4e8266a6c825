// Collectives that the hierarchy does not serve: MPI's own, on the whole communicator.
#include "collectives/nodes/algorithms.hpp"
#include "collectives/through_mpi.hpp"

namespace ropewalk::collectives::nodes {

void scan(NodeCommunicator::State& state, const void* send, void* receive, std::size_t count,
          const Operation& operation, bool exclusive) {
  mpi_scan(state, send, receive, count, operation, exclusive);
}

}  // namespace ropewalk::collectives::nodes
