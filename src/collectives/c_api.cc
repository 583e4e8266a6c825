// This file is the C interface of the blocking collectives.
#include "collectives/c_collectives.hpp"
#include "mpi/c_out.hpp"

namespace {

using ropewalk::c_call;
using ropewalk::Collectives;
using ropewalk::require_argument;
using ropewalk::collectives::Elements;
using ropewalk::collectives::move_now;
using ropewalk::collectives::reduce_now;
using ropewalk::collectives::typed::Reduction;
namespace typed = ropewalk::collectives::typed;

}  // namespace

extern "C" {

int rw_comm_create(rw_mpi_comm comm, rw_comm** out) {
  return c_call([&] {
    ropewalk::mpi::require_out({comm}, out);
    *out = new rw_comm{Collectives(ropewalk::Communicator(comm))};
  });
}

int rw_comm_free(rw_comm* comm) {
  return c_call([&] { delete comm; });
}

int rw_comm_direct(const rw_comm* comm, int* out) {
  return c_call([&] {
    require_argument(comm, "comm");
    require_argument(out, "out");
    *out = comm->communicator.direct() ? 1 : 0;
  });
}

int rw_barrier(rw_comm* comm) {
  return c_call([&] {
    require_argument(comm, "comm");
    comm->communicator.barrier();
  });
}

int rw_allreduce(const void* send, void* receive, size_t count, rw_type type, rw_op op,
                 rw_comm* comm) {
  return reduce_now(comm, type, op, [&](Collectives& on, const Reduction& how) {
    typed::allreduce(on, send, receive, count, how);
  });
}

int rw_reduce(const void* send, void* receive, size_t count, rw_type type, rw_op op, int root,
              rw_comm* comm) {
  return reduce_now(comm, type, op, [&](Collectives& on, const Reduction& how) {
    typed::reduce(on, send, receive, count, how, root);
  });
}

int rw_scan(const void* send, void* receive, size_t count, rw_type type, rw_op op, rw_comm* comm) {
  return reduce_now(comm, type, op, [&](Collectives& on, const Reduction& how) {
    typed::scan(on, send, receive, count, how, false);
  });
}

int rw_exscan(const void* send, void* receive, size_t count, rw_type type, rw_op op,
              rw_comm* comm) {
  return reduce_now(comm, type, op, [&](Collectives& on, const Reduction& how) {
    typed::scan(on, send, receive, count, how, true);
  });
}

int rw_reduce_scatter(const void* send, void* receive, const size_t* counts, rw_type type, rw_op op,
                      rw_comm* comm) {
  return reduce_now(comm, type, op, [&](Collectives& on, const Reduction& how) {
    typed::reduce_scatter(on, send, receive, counts, how);
  });
}

int rw_reduce_scatter_block(const void* send, void* receive, size_t count, rw_type type, rw_op op,
                            rw_comm* comm) {
  return reduce_now(comm, type, op, [&](Collectives& on, const Reduction& how) {
    typed::reduce_scatter_block(on, send, receive, count, how);
  });
}

int rw_bcast(void* data, size_t count, rw_type type, int root, rw_comm* comm) {
  return move_now(comm, type, [&](Collectives& on, const Elements& elements) {
    typed::broadcast(on, {data, count, elements}, root);
  });
}

int rw_allgather(const void* send, void* receive, size_t count, rw_type type, rw_comm* comm) {
  return move_now(comm, type, [&](Collectives& on, const Elements& elements) {
    typed::allgather(on, {send, count, elements}, {receive, count, elements});
  });
}

int rw_allgatherv(const void* send, size_t send_count, void* receive, const size_t* counts,
                  const size_t* displacements, rw_type type, rw_comm* comm) {
  return move_now(comm, type, [&](Collectives& on, const Elements& elements) {
    typed::allgatherv(on, {send, send_count, elements}, {receive, counts, displacements, elements});
  });
}

int rw_gather(const void* send, void* receive, size_t count, rw_type type, int root,
              rw_comm* comm) {
  return move_now(comm, type, [&](Collectives& on, const Elements& elements) {
    typed::gather(on, {send, count, elements}, {receive, count, elements}, root);
  });
}

int rw_gatherv(const void* send, size_t send_count, void* receive, const size_t* counts,
               const size_t* displacements, rw_type type, int root, rw_comm* comm) {
  return move_now(comm, type, [&](Collectives& on, const Elements& elements) {
    typed::gatherv(on, {send, send_count, elements}, {receive, counts, displacements, elements},
                   root);
  });
}

int rw_scatter(const void* send, void* receive, size_t count, rw_type type, int root,
               rw_comm* comm) {
  return move_now(comm, type, [&](Collectives& on, const Elements& elements) {
    typed::scatter(on, {send, count, elements}, {receive, count, elements}, root);
  });
}

int rw_scatterv(const void* send, const size_t* counts, const size_t* displacements, void* receive,
                size_t receive_count, rw_type type, int root, rw_comm* comm) {
  return move_now(comm, type, [&](Collectives& on, const Elements& elements) {
    typed::scatterv(on, {send, counts, displacements, elements}, {receive, receive_count, elements},
                    root);
  });
}

int rw_alltoall(const void* send, void* receive, size_t count, rw_type type, rw_comm* comm) {
  return move_now(comm, type, [&](Collectives& on, const Elements& elements) {
    typed::alltoall(on, {send, count, elements}, {receive, count, elements});
  });
}

int rw_alltoallv(const void* send, const size_t* send_counts, const size_t* send_displacements,
                 void* receive, const size_t* receive_counts, const size_t* receive_displacements,
                 rw_type type, rw_comm* comm) {
  return move_now(comm, type, [&](Collectives& on, const Elements& elements) {
    typed::alltoallv(on, {send, send_counts, send_displacements, elements},
                     {receive, receive_counts, receive_displacements, elements});
  });
}
}
