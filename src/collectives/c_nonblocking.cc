// This file is the C interface of the nonblocking collectives, which run the blocking ones on the
// communicator's worker. Types and operations are resolved when a call is started, so that what is
// wrong is said there.
#include <memory>

#include "collectives/c_collectives.hpp"

namespace {

using ropewalk::c_call;
using ropewalk::Collectives;
using ropewalk::require_argument;
using ropewalk::collectives::Elements;
using ropewalk::collectives::typed::Reduction;
namespace typed = ropewalk::collectives::typed;

template <class Prepare, class Call>
int later(rw_comm* comm, rw_request** out, Prepare prepare, Call call) {
  return c_call([&] {
    require_argument(comm, "comm");
    require_argument(out, "out");
    Collectives& communicator = comm->communicator;
    *out = new rw_request{communicator.start(
        [call, what = prepare(communicator)](Collectives& on) { call(on, what); })};
  });
}

template <class Call>
int move_later(rw_comm* comm, rw_type type, rw_request** out, Call call) {
  return later(
      comm, out, [&](Collectives& on) { return typed::elements_of(on, type); }, call);
}

template <class Call>
int reduce_later(rw_comm* comm, rw_type type, rw_op op, rw_request** out, Call call) {
  return later(
      comm, out, [&](Collectives& on) { return typed::reduction_of(on, type, op); }, call);
}

}  // namespace

extern "C" {

int rw_iallreduce(const void* send, void* receive, size_t count, rw_type type, rw_op op,
                  rw_comm* comm, rw_request** out) {
  return reduce_later(comm, type, op, out, [=](Collectives& on, const Reduction& how) {
    typed::allreduce(on, send, receive, count, how);
  });
}

int rw_ireduce(const void* send, void* receive, size_t count, rw_type type, rw_op op, int root,
               rw_comm* comm, rw_request** out) {
  return reduce_later(comm, type, op, out, [=](Collectives& on, const Reduction& how) {
    typed::reduce(on, send, receive, count, how, root);
  });
}

int rw_iscan(const void* send, void* receive, size_t count, rw_type type, rw_op op, rw_comm* comm,
             rw_request** out) {
  return reduce_later(comm, type, op, out, [=](Collectives& on, const Reduction& how) {
    typed::scan(on, send, receive, count, how, false);
  });
}

int rw_iexscan(const void* send, void* receive, size_t count, rw_type type, rw_op op, rw_comm* comm,
               rw_request** out) {
  return reduce_later(comm, type, op, out, [=](Collectives& on, const Reduction& how) {
    typed::scan(on, send, receive, count, how, true);
  });
}

int rw_ireduce_scatter(const void* send, void* receive, const size_t* counts, rw_type type,
                       rw_op op, rw_comm* comm, rw_request** out) {
  return reduce_later(comm, type, op, out, [=](Collectives& on, const Reduction& how) {
    typed::reduce_scatter(on, send, receive, counts, how);
  });
}

int rw_ireduce_scatter_block(const void* send, void* receive, size_t count, rw_type type, rw_op op,
                             rw_comm* comm, rw_request** out) {
  return reduce_later(comm, type, op, out, [=](Collectives& on, const Reduction& how) {
    typed::reduce_scatter_block(on, send, receive, count, how);
  });
}

int rw_ibcast(void* data, size_t count, rw_type type, int root, rw_comm* comm, rw_request** out) {
  return move_later(comm, type, out, [=](Collectives& on, const Elements& elements) {
    typed::broadcast(on, {data, count, elements}, root);
  });
}

int rw_iallgather(const void* send, void* receive, size_t count, rw_type type, rw_comm* comm,
                  rw_request** out) {
  return move_later(comm, type, out, [=](Collectives& on, const Elements& elements) {
    typed::allgather(on, {send, count, elements}, {receive, count, elements});
  });
}

int rw_iallgatherv(const void* send, size_t send_count, void* receive, const size_t* counts,
                   const size_t* displacements, rw_type type, rw_comm* comm, rw_request** out) {
  return move_later(comm, type, out, [=](Collectives& on, const Elements& elements) {
    typed::allgatherv(on, {send, send_count, elements}, {receive, counts, displacements, elements});
  });
}

int rw_igather(const void* send, void* receive, size_t count, rw_type type, int root, rw_comm* comm,
               rw_request** out) {
  return move_later(comm, type, out, [=](Collectives& on, const Elements& elements) {
    typed::gather(on, {send, count, elements}, {receive, count, elements}, root);
  });
}

int rw_igatherv(const void* send, size_t send_count, void* receive, const size_t* counts,
                const size_t* displacements, rw_type type, int root, rw_comm* comm,
                rw_request** out) {
  return move_later(comm, type, out, [=](Collectives& on, const Elements& elements) {
    typed::gatherv(on, {send, send_count, elements}, {receive, counts, displacements, elements},
                   root);
  });
}

int rw_iscatter(const void* send, void* receive, size_t count, rw_type type, int root,
                rw_comm* comm, rw_request** out) {
  return move_later(comm, type, out, [=](Collectives& on, const Elements& elements) {
    typed::scatter(on, {send, count, elements}, {receive, count, elements}, root);
  });
}

int rw_iscatterv(const void* send, const size_t* counts, const size_t* displacements, void* receive,
                 size_t receive_count, rw_type type, int root, rw_comm* comm, rw_request** out) {
  return move_later(comm, type, out, [=](Collectives& on, const Elements& elements) {
    typed::scatterv(on, {send, counts, displacements, elements}, {receive, receive_count, elements},
                    root);
  });
}

int rw_ialltoall(const void* send, void* receive, size_t count, rw_type type, rw_comm* comm,
                 rw_request** out) {
  return move_later(comm, type, out, [=](Collectives& on, const Elements& elements) {
    typed::alltoall(on, {send, count, elements}, {receive, count, elements});
  });
}

int rw_ialltoallv(const void* send, const size_t* send_counts, const size_t* send_displacements,
                  void* receive, const size_t* receive_counts, const size_t* receive_displacements,
                  rw_type type, rw_comm* comm, rw_request** out) {
  return move_later(comm, type, out, [=](Collectives& on, const Elements& elements) {
    typed::alltoallv(on, {send, send_counts, send_displacements, elements},
                     {receive, receive_counts, receive_displacements, elements});
  });
}

int rw_ibarrier(rw_comm* comm, rw_request** out) {
  return c_call([&] {
    require_argument(out, "out");
    require_argument(comm, "comm");
    *out = new rw_request{comm->communicator.start_barrier()};
  });
}

int rw_test(rw_request** request, int* done) {
  return c_call([&] {
    require_argument(request, "request");
    require_argument(done, "done");
    *done = *request == nullptr || (*request)->request.test() ? 1 : 0;
    if (*done == 1) delete std::exchange(*request, nullptr);
  });
}

int rw_wait(rw_request** request) {
  return c_call([&] {
    require_argument(request, "request");
    if (*request == nullptr) return;
    const std::unique_ptr<rw_request> owned(std::exchange(*request, nullptr));
    owned->request.wait();
  });
}
}
