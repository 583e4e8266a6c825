#include "collectives/through_mpi.hpp"

#include "mpi/datatypes.hpp"
#include "mpi/fallback.hpp"

namespace ropewalk::collectives {
namespace {

struct Handles {
  mpi::Datatype type;
  mpi::Op op;
};

Handles handles(const Operation& operation) {
  if (operation.by_mpi) return {operation.mpi_type, operation.mpi_op};
  const mpi::Datatype type = mpi::datatype(operation.type);
  if (type == mpi::datatype_null()) {
    throw Error(ErrorCode::unsupported,
                std::string("type: this MPI has no datatype for ") + name(operation.type) +
                    ", and the ranks do not share a node; convert to float32");
  }
  return {type, mpi::op(operation.op)};
}

// For MPI's own call on it, which is then the path of the call.
mpi::Comm comm_of(NodeCommunicator::State& state) {
  if (state.nodes != nullptr) state.nodes->path = Path::mpi;
  return state.comm;
}

// In place is send == receive here, MPI_IN_PLACE there.
const void* sent(const void* send, const void* own_place) {
  return send == own_place ? mpi::in_place() : send;
}

const void* place(const void* buffer, const std::size_t* displacements, int rank) {
  return static_cast<const std::byte*>(buffer) + displacements[rank];
}

}  // namespace

void mpi_reduce(NodeCommunicator::State& state, const void* send, void* receive, std::size_t count,
                const Operation& operation, int root) {
  const Handles with = handles(operation);
  if (root < 0) {
    mpi::fallback::allreduce(sent(send, receive), receive, count, with.type, with.op,
                             comm_of(state));
  } else {
    const void* from = state.rank == root ? sent(send, receive) : send;
    mpi::fallback::reduce(from, receive, count, with.type, with.op, root, comm_of(state));
  }
}

void mpi_scan(NodeCommunicator::State& state, const void* send, void* receive, std::size_t count,
              const Operation& operation, bool exclusive) {
  const Handles with = handles(operation);
  const auto scan = exclusive ? mpi::fallback::exscan : mpi::fallback::scan;
  scan(sent(send, receive), receive, count, with.type, with.op, comm_of(state));
}

void mpi_reduce_scatter(NodeCommunicator::State& state, const void* send, void* receive,
                        const std::size_t* counts, const Operation& operation) {
  const Handles with = handles(operation);
  mpi::fallback::reduce_scatter(sent(send, receive), receive, counts, with.type, with.op,
                                comm_of(state));
}

void mpi_broadcast(NodeCommunicator::State& state, void* data, std::size_t bytes, int root) {
  mpi::fallback::broadcast(data, bytes, mpi::byte_type(), root, comm_of(state));
}

void mpi_allgatherv(NodeCommunicator::State& state, const void* send, std::size_t bytes,
                    void* receive, const std::size_t* counts, const std::size_t* displacements) {
  mpi::fallback::allgatherv(sent(send, place(receive, displacements, state.rank)), bytes,
                            mpi::byte_type(), receive, counts, displacements, mpi::byte_type(),
                            comm_of(state));
}

void mpi_gatherv(NodeCommunicator::State& state, const void* send, std::size_t bytes, void* receive,
                 const std::size_t* counts, const std::size_t* displacements, int root) {
  const void* from = state.rank == root ? sent(send, place(receive, displacements, root)) : send;
  mpi::fallback::gatherv(from, bytes, mpi::byte_type(), receive, counts, displacements,
                         mpi::byte_type(), root, comm_of(state));
}

void mpi_scatterv(NodeCommunicator::State& state, const void* send, const std::size_t* counts,
                  const std::size_t* displacements, void* receive, std::size_t bytes, int root) {
  const bool stays = state.rank == root && receive == nullptr;
  mpi::fallback::scatterv(send, counts, displacements, mpi::byte_type(),
                          stays ? mpi::in_place() : receive, bytes, mpi::byte_type(), root,
                          comm_of(state));
}

void mpi_allgather(NodeCommunicator::State& state, const void* send, std::size_t bytes,
                   void* receive) {
  const auto rank = static_cast<std::size_t>(state.rank);
  mpi::fallback::allgather(sent(send, static_cast<const std::byte*>(receive) + rank * bytes), bytes,
                           mpi::byte_type(), receive, bytes, mpi::byte_type(), comm_of(state));
}

void mpi_gather(NodeCommunicator::State& state, const void* send, std::size_t bytes, void* receive,
                int root) {
  const auto rank = static_cast<std::size_t>(state.rank);
  const void* own = static_cast<const std::byte*>(receive) + rank * bytes;
  mpi::fallback::gather(state.rank == root ? sent(send, own) : send, bytes, mpi::byte_type(),
                        receive, bytes, mpi::byte_type(), root, comm_of(state));
}

void mpi_scatter(NodeCommunicator::State& state, const void* send, void* receive, std::size_t bytes,
                 int root) {
  const bool stays = state.rank == root && receive == nullptr;
  mpi::fallback::scatter(send, bytes, mpi::byte_type(), stays ? mpi::in_place() : receive, bytes,
                         mpi::byte_type(), root, comm_of(state));
}

void mpi_alltoall(NodeCommunicator::State& state, const void* send, void* receive,
                  std::size_t bytes) {
  mpi::fallback::alltoall(sent(send, receive), bytes, mpi::byte_type(), receive, bytes,
                          mpi::byte_type(), comm_of(state));
}

void mpi_alltoallv(NodeCommunicator::State& state, const void* send, const std::size_t* send_counts,
                   const std::size_t* send_displacements, void* receive,
                   const std::size_t* receive_counts, const std::size_t* receive_displacements) {
  mpi::fallback::alltoallv(sent(send, receive), send_counts, send_displacements, mpi::byte_type(),
                           receive, receive_counts, receive_displacements, mpi::byte_type(),
                           comm_of(state));
}

}  // namespace ropewalk::collectives
