// The C interface of the collectives: types resolved, counts turned into bytes.
#include <algorithm>
#include <functional>
#include <memory>
#include <utility>
#include <vector>

#include "c_call.hpp"
#include "collectives/checks.hpp"
#include "collectives/datatypes.hpp"
#include "collectives/reductions.hpp"
#include "collectives/state.hpp"

struct rw_comm {
  ropewalk::NodeCommunicator communicator;
};
struct rw_request {
  ropewalk::CollectiveRequest request;
};

namespace {

using ropewalk::c_call;
using ropewalk::Error;
using ropewalk::ErrorCode;
using ropewalk::NodeCommunicator;
using ropewalk::require_argument;
using ropewalk::collectives::Contiguous;
using ropewalk::collectives::Elements;
using ropewalk::collectives::Operation;

using Sizes = std::vector<std::size_t>;

// A refusal of this rank alone must reach the others, who are about to wait for it.
template <class Resolve>
auto jointly(rw_comm* comm, Resolve resolve) {
  require_argument(comm, "comm");
  try {
    return resolve();
  } catch (const Error&) {
    auto& engine = comm->communicator.state().engine;
    if (engine != nullptr) engine->refuse();
    throw;
  }
}

Operation operation_of(rw_comm* comm, rw_type type, rw_op op) {
  return jointly(comm, [&] { return ropewalk::collectives::operation(type, op); });
}

Elements elements_of(rw_comm* comm, rw_type type) {
  return jointly(comm, [&] { return ropewalk::collectives::elements(type); });
}

// Runs a reduction with the state, behind nonblocking calls.
template <class Call>
int reduction(rw_comm* comm, rw_type type, rw_op op, Call call) {
  return c_call([&] {
    const Operation operation = operation_of(comm, type, op);
    auto& state = comm->communicator.state();
    state.run([&] { call(state, operation); });
  });
}

Sizes scaled(const std::size_t* values, int ranks, std::size_t bytes) {
  Sizes result;
  for (int rank = 0; values != nullptr && rank < ranks; ++rank) {
    result.push_back(values[rank] * bytes);
  }
  return result;
}

std::size_t end_of(const std::size_t* counts, const std::size_t* displacements, int ranks) {
  std::size_t end = 0;
  for (int rank = 0; counts != nullptr && displacements != nullptr && rank < ranks; ++rank) {
    end = std::max(end, displacements[rank] + counts[rank]);
  }
  return end;
}

const std::size_t* pointer(const Sizes& sizes) { return sizes.empty() ? nullptr : sizes.data(); }

// A movement between buffers of `send_count` and `receive_count` elements; the call sees bytes.
template <class Call>
void move(rw_comm* comm, const Elements& elements, const void* send, std::size_t send_count,
          void* receive, std::size_t receive_count, Call call) {
  const auto on = comm->communicator.state().comm;
  Contiguous from(elements, send, send_count, on);
  Contiguous to(elements, receive, receive_count, on);
  from.fill();
  to.fill();  // what the call leaves alone must come back as it was
  call(from.data(), to.data());
  to.finish();
}

void started(rw_request** out, ropewalk::CollectiveRequest request) {
  *out = new rw_request{std::move(request)};
}

}  // namespace

extern "C" {

int rw_comm_create(rw_mpi_comm comm, rw_comm** out) {
  return c_call([&] {
    require_argument(out, "out");
    *out = new rw_comm{NodeCommunicator(ropewalk::Communicator(comm))};
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
  return reduction(comm, type, op, [&](auto& state, const Operation& operation) {
    ropewalk::collectives::reduce(state, send, receive, count, operation, -1);
  });
}

int rw_reduce(const void* send, void* receive, size_t count, rw_type type, rw_op op, int root,
              rw_comm* comm) {
  return reduction(comm, type, op, [&](auto& state, const Operation& operation) {
    ropewalk::collectives::check_root(state, root);
    ropewalk::collectives::reduce(state, send, receive, count, operation, root);
  });
}

int rw_scan(const void* send, void* receive, size_t count, rw_type type, rw_op op, rw_comm* comm) {
  return reduction(comm, type, op, [&](auto& state, const Operation& operation) {
    ropewalk::collectives::scan(state, send, receive, count, operation, false);
  });
}

int rw_exscan(const void* send, void* receive, size_t count, rw_type type, rw_op op,
              rw_comm* comm) {
  return reduction(comm, type, op, [&](auto& state, const Operation& operation) {
    ropewalk::collectives::scan(state, send, receive, count, operation, true);
  });
}

int rw_reduce_scatter(const void* send, void* receive, const size_t* counts, rw_type type, rw_op op,
                      rw_comm* comm) {
  return reduction(comm, type, op, [&](auto& state, const Operation& operation) {
    ropewalk::collectives::reduce_scatter(state, send, receive, counts, operation);
  });
}

int rw_reduce_scatter_block(const void* send, void* receive, size_t count, rw_type type, rw_op op,
                            rw_comm* comm) {
  return reduction(comm, type, op, [&](auto& state, const Operation& operation) {
    const Sizes counts(state.size, count);
    ropewalk::collectives::reduce_scatter(state, send, receive, counts.data(), operation);
  });
}

int rw_bcast(void* data, size_t count, rw_type type, int root, rw_comm* comm) {
  return c_call([&] {
    const Elements elements = elements_of(comm, type);
    move(comm, elements, nullptr, 0, data, count, [&](void*, void* bytes) {
      comm->communicator.broadcast(bytes, count * elements.bytes, root);
    });
  });
}

int rw_allgather(const void* send, void* receive, size_t count, rw_type type, rw_comm* comm) {
  return c_call([&] {
    const Elements elements = elements_of(comm, type);
    const std::size_t all = count * static_cast<std::size_t>(comm->communicator.size());
    move(comm, elements, send, count, receive, all, [&](void* from, void* to) {
      comm->communicator.allgather(from, to, count * elements.bytes);
    });
  });
}

int rw_allgatherv(const void* send, size_t send_count, void* receive, const size_t* counts,
                  const size_t* displacements, rw_type type, rw_comm* comm) {
  return c_call([&] {
    const Elements elements = elements_of(comm, type);
    const int ranks = comm->communicator.size();
    const Sizes sizes = scaled(counts, ranks, elements.bytes);
    const Sizes places = scaled(displacements, ranks, elements.bytes);
    move(comm, elements, send, send_count, receive, end_of(counts, displacements, ranks),
         [&](void* from, void* to) {
           comm->communicator.allgatherv(from, send_count * elements.bytes, to, pointer(sizes),
                                         pointer(places));
         });
  });
}

int rw_gather(const void* send, void* receive, size_t count, rw_type type, int root,
              rw_comm* comm) {
  return c_call([&] {
    const Elements elements = elements_of(comm, type);
    const bool at_root = comm->communicator.rank() == root;
    const std::size_t all =
        at_root ? count * static_cast<std::size_t>(comm->communicator.size()) : 0;
    move(comm, elements, send, count, receive, all, [&](void* from, void* to) {
      comm->communicator.gather(from, to, count * elements.bytes, root);
    });
  });
}

int rw_gatherv(const void* send, size_t send_count, void* receive, const size_t* counts,
               const size_t* displacements, rw_type type, int root, rw_comm* comm) {
  return c_call([&] {
    const Elements elements = elements_of(comm, type);
    const int ranks = comm->communicator.rank() == root ? comm->communicator.size() : 0;
    const Sizes sizes = scaled(counts, ranks, elements.bytes);
    const Sizes places = scaled(displacements, ranks, elements.bytes);
    move(comm, elements, send, send_count, receive, end_of(counts, displacements, ranks),
         [&](void* from, void* to) {
           comm->communicator.gatherv(from, send_count * elements.bytes, to, pointer(sizes),
                                      pointer(places), root);
         });
  });
}

int rw_scatter(const void* send, void* receive, size_t count, rw_type type, int root,
               rw_comm* comm) {
  return c_call([&] {
    const Elements elements = elements_of(comm, type);
    const bool at_root = comm->communicator.rank() == root;
    const std::size_t all =
        at_root ? count * static_cast<std::size_t>(comm->communicator.size()) : 0;
    move(comm, elements, send, all, receive, count, [&](void* from, void* to) {
      comm->communicator.scatter(from, to, count * elements.bytes, root);
    });
  });
}

int rw_scatterv(const void* send, const size_t* counts, const size_t* displacements, void* receive,
                size_t receive_count, rw_type type, int root, rw_comm* comm) {
  return c_call([&] {
    const Elements elements = elements_of(comm, type);
    const int ranks = comm->communicator.rank() == root ? comm->communicator.size() : 0;
    const Sizes sizes = scaled(counts, ranks, elements.bytes);
    const Sizes places = scaled(displacements, ranks, elements.bytes);
    move(comm, elements, send, end_of(counts, displacements, ranks), receive, receive_count,
         [&](void* from, void* to) {
           comm->communicator.scatterv(from, pointer(sizes), pointer(places), to,
                                       receive_count * elements.bytes, root);
         });
  });
}

int rw_alltoall(const void* send, void* receive, size_t count, rw_type type, rw_comm* comm) {
  return c_call([&] {
    const Elements elements = elements_of(comm, type);
    const std::size_t all = count * static_cast<std::size_t>(comm->communicator.size());
    move(comm, elements, send, all, receive, all, [&](void* from, void* to) {
      comm->communicator.alltoall(from, to, count * elements.bytes);
    });
  });
}

int rw_alltoallv(const void* send, const size_t* send_counts, const size_t* send_displacements,
                 void* receive, const size_t* receive_counts, const size_t* receive_displacements,
                 rw_type type, rw_comm* comm) {
  return c_call([&] {
    const Elements elements = elements_of(comm, type);
    const int ranks = comm->communicator.size();
    const Sizes send_sizes = scaled(send_counts, ranks, elements.bytes);
    const Sizes send_places = scaled(send_displacements, ranks, elements.bytes);
    const Sizes sizes = scaled(receive_counts, ranks, elements.bytes);
    const Sizes places = scaled(receive_displacements, ranks, elements.bytes);
    move(comm, elements, send, end_of(send_counts, send_displacements, ranks), receive,
         end_of(receive_counts, receive_displacements, ranks), [&](void* from, void* to) {
           comm->communicator.alltoallv(from, pointer(send_sizes), pointer(send_places), to,
                                        pointer(sizes), pointer(places));
         });
  });
}

int rw_iallreduce(const void* send, void* receive, size_t count, rw_type type, rw_op op,
                  rw_comm* comm, rw_request** out) {
  return c_call([&] {
    require_argument(out, "out");
    const Operation operation = operation_of(comm, type, op);
    started(out, comm->communicator.start([=](NodeCommunicator& on) {
      ropewalk::collectives::reduce(on.state(), send, receive, count, operation, -1);
    }));
  });
}

int rw_ibcast(void* data, size_t count, rw_type type, int root, rw_comm* comm, rw_request** out) {
  return c_call([&] {
    require_argument(out, "out");
    const Elements elements = elements_of(comm, type);
    started(out, comm->communicator.start([=](NodeCommunicator& on) {
      move(comm, elements, nullptr, 0, data, count,
           [&](void*, void* bytes) { on.broadcast(bytes, count * elements.bytes, root); });
    }));
  });
}

int rw_ibarrier(rw_comm* comm, rw_request** out) {
  return c_call([&] {
    require_argument(out, "out");
    require_argument(comm, "comm");
    started(out, comm->communicator.start_barrier());
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
