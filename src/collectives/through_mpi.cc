#include "collectives/through_mpi.hpp"

#include <string>

#include "collectives/nodes/nodes.hpp"
#include "mpi/datatypes.hpp"
#include "mpi/fallback.hpp"
#include "ropewalk/error.hpp"

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

// In place is send == receive here, MPI_IN_PLACE there.
const void* sent(const void* send, const void* own_place) {
  return send == own_place ? mpi::in_place() : send;
}

const void* place(const void* buffer, const Blocks& blocks, int rank) {
  return static_cast<const std::byte*>(buffer) + blocks.displacements[rank];
}

}  // namespace

ThroughMpi::ThroughMpi(nodes::Nodes& hierarchy) noexcept
    : rank_(hierarchy.layout().rank), hierarchy_(&hierarchy) {}

// call(communicator, waiter), see mpi/waiter.hpp.
template <class Call>
void ThroughMpi::make(const Call& call) {
  if (hierarchy_ == nullptr) return call(comm_, nullptr);
  hierarchy_->path = Path::mpi;
  hierarchy_->run_by_mpi(call);
}

void ThroughMpi::barrier() { make(&mpi::fallback::barrier); }

void ThroughMpi::reduce(const void* send, void* receive, std::size_t count,
                        const Operation& operation, int root) {
  const Handles with = handles(operation);
  const void* from = root < 0 || rank_ == root ? sent(send, receive) : send;
  make([&](mpi::Comm comm, mpi::Waiter* waiter) {
    if (root < 0) {
      mpi::fallback::allreduce(from, receive, count, with.type, with.op, comm, waiter);
    } else {
      mpi::fallback::reduce(from, receive, count, with.type, with.op, root, comm, waiter);
    }
  });
}

void ThroughMpi::scan(const void* send, void* receive, std::size_t count,
                      const Operation& operation, bool exclusive) {
  const Handles with = handles(operation);
  const auto scan = exclusive ? mpi::fallback::exscan : mpi::fallback::scan;
  make([&](mpi::Comm comm, mpi::Waiter* waiter) {
    scan(sent(send, receive), receive, count, with.type, with.op, comm, waiter);
  });
}

void ThroughMpi::reduce_scatter(const void* send, void* receive, const std::size_t* counts,
                                const Operation& operation) {
  const Handles with = handles(operation);
  make([&](mpi::Comm comm, mpi::Waiter* waiter) {
    mpi::fallback::reduce_scatter(sent(send, receive), receive, counts, with.type, with.op, comm,
                                  waiter);
  });
}

void ThroughMpi::broadcast(void* data, std::size_t bytes, int root) {
  make([&](mpi::Comm comm, mpi::Waiter* waiter) {
    mpi::fallback::broadcast(data, bytes, mpi::byte_type(), root, comm, waiter);
  });
}

void ThroughMpi::allgather(const void* send, void* receive, const Blocks& blocks) {
  const std::size_t bytes = blocks.counts[rank_];
  const void* from = sent(send, place(receive, blocks, rank_));
  make([&](mpi::Comm comm, mpi::Waiter* waiter) {
    const mpi::Datatype type = mpi::byte_type();
    if (blocks.equal) {
      mpi::fallback::allgather(from, bytes, type, receive, bytes, type, comm, waiter);
    } else {
      mpi::fallback::allgatherv(from, bytes, type, receive, blocks.counts, blocks.displacements,
                                type, comm, waiter);
    }
  });
}

void ThroughMpi::gather(const void* send, std::size_t bytes, void* receive, const Blocks& blocks,
                        int root) {
  const void* from = rank_ == root ? sent(send, place(receive, blocks, root)) : send;
  make([&](mpi::Comm comm, mpi::Waiter* waiter) {
    const mpi::Datatype type = mpi::byte_type();
    if (blocks.equal) {
      mpi::fallback::gather(from, bytes, type, receive, bytes, type, root, comm, waiter);
    } else {
      mpi::fallback::gatherv(from, bytes, type, receive, blocks.counts, blocks.displacements, type,
                             root, comm, waiter);
    }
  });
}

void ThroughMpi::scatter(const void* send, const Blocks& blocks, void* receive, std::size_t bytes,
                         int root) {
  void* to = rank_ == root && receive == nullptr ? mpi::in_place() : receive;
  make([&](mpi::Comm comm, mpi::Waiter* waiter) {
    const mpi::Datatype type = mpi::byte_type();
    if (blocks.equal) {
      mpi::fallback::scatter(send, bytes, type, to, bytes, type, root, comm, waiter);
    } else {
      mpi::fallback::scatterv(send, blocks.counts, blocks.displacements, type, to, bytes, type,
                              root, comm, waiter);
    }
  });
}

void ThroughMpi::alltoall(const void* send, void* receive, std::size_t bytes_each) {
  make([&](mpi::Comm comm, mpi::Waiter* waiter) {
    mpi::fallback::alltoall(sent(send, receive), bytes_each, mpi::byte_type(), receive, bytes_each,
                            mpi::byte_type(), comm, waiter);
  });
}

// A rank without data may have null for both buffers and is not in place, which MPI demands of all
// ranks or of none. It has an address of its own, since MPICH refuses the same one twice.
void ThroughMpi::alltoallv(const void* send, const Blocks& sends, void* receive,
                           const Blocks& receives) {
  static constexpr std::byte nothing{};
  make([&](mpi::Comm comm, mpi::Waiter* waiter) {
    const bool in_place = sends.in_place || (send == receive && sends.end(mpi::size(comm)) != 0);
    const void* from = send;
    if (send == receive) from = in_place ? mpi::in_place() : &nothing;
    mpi::fallback::alltoallv(from, sends.counts, sends.displacements, mpi::byte_type(), receive,
                             receives.counts, receives.displacements, mpi::byte_type(), comm,
                             waiter);
  });
}

}  // namespace ropewalk::collectives
