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

// call(communicator, waiter), see mpi/waiter.hpp.
template <class Call>
void make(NodeCommunicator::State& state, const Call& call) {
  if (state.nodes == nullptr) return call(state.comm, nullptr);
  state.nodes->path = Path::mpi;
  state.nodes->run_by_mpi(call);
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
    make(state, [&](mpi::Comm comm, mpi::Waiter* waiter) {
      mpi::fallback::allreduce(sent(send, receive), receive, count, with.type, with.op, comm,
                               waiter);
    });
  } else {
    const void* from = state.rank == root ? sent(send, receive) : send;
    make(state, [&](mpi::Comm comm, mpi::Waiter* waiter) {
      mpi::fallback::reduce(from, receive, count, with.type, with.op, root, comm, waiter);
    });
  }
}

void mpi_scan(NodeCommunicator::State& state, const void* send, void* receive, std::size_t count,
              const Operation& operation, bool exclusive) {
  const Handles with = handles(operation);
  const auto scan = exclusive ? mpi::fallback::exscan : mpi::fallback::scan;
  make(state, [&](mpi::Comm comm, mpi::Waiter* waiter) {
    scan(sent(send, receive), receive, count, with.type, with.op, comm, waiter);
  });
}

void mpi_reduce_scatter(NodeCommunicator::State& state, const void* send, void* receive,
                        const std::size_t* counts, const Operation& operation) {
  const Handles with = handles(operation);
  make(state, [&](mpi::Comm comm, mpi::Waiter* waiter) {
    mpi::fallback::reduce_scatter(sent(send, receive), receive, counts, with.type, with.op, comm,
                                  waiter);
  });
}

void mpi_barrier(NodeCommunicator::State& state) { make(state, &mpi::fallback::barrier); }

void mpi_broadcast(NodeCommunicator::State& state, void* data, std::size_t bytes, int root) {
  make(state, [&](mpi::Comm comm, mpi::Waiter* waiter) {
    mpi::fallback::broadcast(data, bytes, mpi::byte_type(), root, comm, waiter);
  });
}

void mpi_allgatherv(NodeCommunicator::State& state, const void* send, std::size_t bytes,
                    void* receive, const std::size_t* counts, const std::size_t* displacements) {
  make(state, [&](mpi::Comm comm, mpi::Waiter* waiter) {
    mpi::fallback::allgatherv(sent(send, place(receive, displacements, state.rank)), bytes,
                              mpi::byte_type(), receive, counts, displacements, mpi::byte_type(),
                              comm, waiter);
  });
}

void mpi_gatherv(NodeCommunicator::State& state, const void* send, std::size_t bytes, void* receive,
                 const std::size_t* counts, const std::size_t* displacements, int root) {
  const void* from = state.rank == root ? sent(send, place(receive, displacements, root)) : send;
  make(state, [&](mpi::Comm comm, mpi::Waiter* waiter) {
    mpi::fallback::gatherv(from, bytes, mpi::byte_type(), receive, counts, displacements,
                           mpi::byte_type(), root, comm, waiter);
  });
}

void mpi_scatterv(NodeCommunicator::State& state, const void* send, const std::size_t* counts,
                  const std::size_t* displacements, void* receive, std::size_t bytes, int root) {
  const bool stays = state.rank == root && receive == nullptr;
  make(state, [&](mpi::Comm comm, mpi::Waiter* waiter) {
    mpi::fallback::scatterv(send, counts, displacements, mpi::byte_type(),
                            stays ? mpi::in_place() : receive, bytes, mpi::byte_type(), root, comm,
                            waiter);
  });
}

void mpi_allgather(NodeCommunicator::State& state, const void* send, std::size_t bytes,
                   void* receive) {
  const auto rank = static_cast<std::size_t>(state.rank);
  make(state, [&](mpi::Comm comm, mpi::Waiter* waiter) {
    mpi::fallback::allgather(sent(send, static_cast<const std::byte*>(receive) + rank * bytes),
                             bytes, mpi::byte_type(), receive, bytes, mpi::byte_type(), comm,
                             waiter);
  });
}

void mpi_gather(NodeCommunicator::State& state, const void* send, std::size_t bytes, void* receive,
                int root) {
  const auto rank = static_cast<std::size_t>(state.rank);
  const void* own = static_cast<const std::byte*>(receive) + rank * bytes;
  make(state, [&](mpi::Comm comm, mpi::Waiter* waiter) {
    mpi::fallback::gather(state.rank == root ? sent(send, own) : send, bytes, mpi::byte_type(),
                          receive, bytes, mpi::byte_type(), root, comm, waiter);
  });
}

void mpi_scatter(NodeCommunicator::State& state, const void* send, void* receive, std::size_t bytes,
                 int root) {
  const bool stays = state.rank == root && receive == nullptr;
  make(state, [&](mpi::Comm comm, mpi::Waiter* waiter) {
    mpi::fallback::scatter(send, bytes, mpi::byte_type(), stays ? mpi::in_place() : receive, bytes,
                           mpi::byte_type(), root, comm, waiter);
  });
}

void mpi_alltoall(NodeCommunicator::State& state, const void* send, void* receive,
                  std::size_t bytes) {
  make(state, [&](mpi::Comm comm, mpi::Waiter* waiter) {
    mpi::fallback::alltoall(sent(send, receive), bytes, mpi::byte_type(), receive, bytes,
                            mpi::byte_type(), comm, waiter);
  });
}

void mpi_alltoallv(NodeCommunicator::State& state, const void* send, const std::size_t* send_counts,
                   const std::size_t* send_displacements, void* receive,
                   const std::size_t* receive_counts, const std::size_t* receive_displacements) {
  make(state, [&](mpi::Comm comm, mpi::Waiter* waiter) {
    mpi::fallback::alltoallv(sent(send, receive), send_counts, send_displacements, mpi::byte_type(),
                             receive, receive_counts, receive_displacements, mpi::byte_type(), comm,
                             waiter);
  });
}

}  // namespace ropewalk::collectives
