// This file moves equal blocks. Each rank may describe its data by another count and type as long
// as the signature is the same, so nothing here needs an agreement. Counts that MPI ignores (in
// place, or not at the root) may be anything, and become no type.
#include "mpi/fallback.hpp"
#include "mpi/fallback_counts.hpp"

namespace ropewalk::mpi::fallback {

void barrier(Comm comm, Waiter* waiter) {
  const Functions& call = library().call;
  perform(waiter, "MPI_Barrier", call.barrier, call.ibarrier, comm.value);
}

void broadcast(void* data, std::size_t count, Datatype type, int root, Comm comm, Waiter* waiter) {
  const Functions& call = library().call;
  if (!fits(count) && call.bcast_c != nullptr) {
    return perform(waiter, "MPI_Bcast_c", call.bcast_c, call.ibcast_c, data, c(count), type.value,
                   root, comm.value);
  }
  const Counted n(count, type);
  perform(waiter, "MPI_Bcast", call.bcast, call.ibcast, data, n.count(), n.type(), root,
          comm.value);
}

void allgather(const void* send, std::size_t send_count, Datatype send_type, void* receive,
               std::size_t receive_count, Datatype receive_type, Comm comm, Waiter* waiter) {
  const Functions& call = library().call;
  if (!fits(std::max(send_count, receive_count)) && call.allgather_c != nullptr) {
    return perform(waiter, "MPI_Allgather_c", call.allgather_c, call.iallgather_c, send,
                   c(send_count), send_type.value, receive, c(receive_count), receive_type.value,
                   comm.value);
  }
  const Counted out(send == in_place() ? 0 : send_count, send_type);
  const Counted in(receive_count, receive_type);
  perform(waiter, "MPI_Allgather", call.allgather, call.iallgather, send, out.count(), out.type(),
          receive, in.count(), in.type(), comm.value);
}

void gather(const void* send, std::size_t send_count, Datatype send_type, void* receive,
            std::size_t receive_count, Datatype receive_type, int root, Comm comm, Waiter* waiter) {
  const Functions& call = library().call;
  if (!fits(std::max(send_count, receive_count)) && call.gather_c != nullptr) {
    return perform(waiter, "MPI_Gather_c", call.gather_c, call.igather_c, send, c(send_count),
                   send_type.value, receive, c(receive_count), receive_type.value, root,
                   comm.value);
  }
  const Counted out(send == in_place() ? 0 : send_count, send_type);
  const Counted in(rank(comm) == root ? receive_count : 0, receive_type);
  perform(waiter, "MPI_Gather", call.gather, call.igather, send, out.count(), out.type(), receive,
          in.count(), in.type(), root, comm.value);
}

void scatter(const void* send, std::size_t send_count, Datatype send_type, void* receive,
             std::size_t receive_count, Datatype receive_type, int root, Comm comm,
             Waiter* waiter) {
  const Functions& call = library().call;
  if (!fits(std::max(send_count, receive_count)) && call.scatter_c != nullptr) {
    return perform(waiter, "MPI_Scatter_c", call.scatter_c, call.iscatter_c, send, c(send_count),
                   send_type.value, receive, c(receive_count), receive_type.value, root,
                   comm.value);
  }
  const Counted out(rank(comm) == root ? send_count : 0, send_type);
  const Counted in(receive == in_place() ? 0 : receive_count, receive_type);
  perform(waiter, "MPI_Scatter", call.scatter, call.iscatter, send, out.count(), out.type(),
          receive, in.count(), in.type(), root, comm.value);
}

void alltoall(const void* send, std::size_t send_count, Datatype send_type, void* receive,
              std::size_t receive_count, Datatype receive_type, Comm comm, Waiter* waiter) {
  const Functions& call = library().call;
  if (!fits(std::max(send_count, receive_count)) && call.alltoall_c != nullptr) {
    return perform(waiter, "MPI_Alltoall_c", call.alltoall_c, call.ialltoall_c, send, c(send_count),
                   send_type.value, receive, c(receive_count), receive_type.value, comm.value);
  }
  const Counted out(send == in_place() ? 0 : send_count, send_type);
  const Counted in(receive_count, receive_type);
  perform(waiter, "MPI_Alltoall", call.alltoall, call.ialltoall, send, out.count(), out.type(),
          receive, in.count(), in.type(), comm.value);
}

}  // namespace ropewalk::mpi::fallback
