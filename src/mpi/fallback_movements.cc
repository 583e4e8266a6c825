// Movements of equal blocks. How a rank writes its count is its own affair: only the signature of
// the data must agree, so nothing here needs an agreement. Counts that MPI ignores (in place, or
// not at the root) may be anything, and become no type.
#include "mpi/fallback.hpp"
#include "mpi/fallback_counts.hpp"

namespace ropewalk::mpi::fallback {

void broadcast(void* data, std::size_t count, Datatype type, int root, Comm comm) {
  const Functions& call = library().call;
  if (!fits(count) && call.bcast_c != nullptr) {
    return check(call.bcast_c(data, c(count), type.value, root, comm.value), "MPI_Bcast_c");
  }
  const Counted n(count, type);
  check(call.bcast(data, n.count(), n.type(), root, comm.value), "MPI_Bcast");
}

void allgather(const void* send, std::size_t send_count, Datatype send_type, void* receive,
               std::size_t receive_count, Datatype receive_type, Comm comm) {
  const Functions& call = library().call;
  if (!fits(std::max(send_count, receive_count)) && call.allgather_c != nullptr) {
    return check(call.allgather_c(send, c(send_count), send_type.value, receive, c(receive_count),
                                  receive_type.value, comm.value),
                 "MPI_Allgather_c");
  }
  const Counted out(send == in_place() ? 0 : send_count, send_type);
  const Counted in(receive_count, receive_type);
  check(call.allgather(send, out.count(), out.type(), receive, in.count(), in.type(), comm.value),
        "MPI_Allgather");
}

void gather(const void* send, std::size_t send_count, Datatype send_type, void* receive,
            std::size_t receive_count, Datatype receive_type, int root, Comm comm) {
  const Functions& call = library().call;
  if (!fits(std::max(send_count, receive_count)) && call.gather_c != nullptr) {
    return check(call.gather_c(send, c(send_count), send_type.value, receive, c(receive_count),
                               receive_type.value, root, comm.value),
                 "MPI_Gather_c");
  }
  const Counted out(send == in_place() ? 0 : send_count, send_type);
  const Counted in(rank(comm) == root ? receive_count : 0, receive_type);
  check(
      call.gather(send, out.count(), out.type(), receive, in.count(), in.type(), root, comm.value),
      "MPI_Gather");
}

void scatter(const void* send, std::size_t send_count, Datatype send_type, void* receive,
             std::size_t receive_count, Datatype receive_type, int root, Comm comm) {
  const Functions& call = library().call;
  if (!fits(std::max(send_count, receive_count)) && call.scatter_c != nullptr) {
    return check(call.scatter_c(send, c(send_count), send_type.value, receive, c(receive_count),
                                receive_type.value, root, comm.value),
                 "MPI_Scatter_c");
  }
  const Counted out(rank(comm) == root ? send_count : 0, send_type);
  const Counted in(receive == in_place() ? 0 : receive_count, receive_type);
  check(
      call.scatter(send, out.count(), out.type(), receive, in.count(), in.type(), root, comm.value),
      "MPI_Scatter");
}

void alltoall(const void* send, std::size_t send_count, Datatype send_type, void* receive,
              std::size_t receive_count, Datatype receive_type, Comm comm) {
  const Functions& call = library().call;
  if (!fits(std::max(send_count, receive_count)) && call.alltoall_c != nullptr) {
    return check(call.alltoall_c(send, c(send_count), send_type.value, receive, c(receive_count),
                                 receive_type.value, comm.value),
                 "MPI_Alltoall_c");
  }
  const Counted out(send == in_place() ? 0 : send_count, send_type);
  const Counted in(receive_count, receive_type);
  check(call.alltoall(send, out.count(), out.type(), receive, in.count(), in.type(), comm.value),
        "MPI_Alltoall");
}

}  // namespace ropewalk::mpi::fallback
