// Nonblocking collectives are the blocking ones, run on the worker of the communicator.
#include <functional>
#include <utility>

#include "collectives/algorithms.hpp"
#include "collectives/checks.hpp"
#include "collectives/state.hpp"

namespace ropewalk {

CollectiveRequest Collectives::start(std::function<void(Collectives&)> call) {
  if (mpi::thread_level() != mpi::ThreadLevel::multiple) {
    throw Error(ErrorCode::unsupported,
                "nonblocking collectives: MPI was initialised below MPI_THREAD_MULTIPLE; call "
                "MPI_Init_thread(..., MPI_THREAD_MULTIPLE, ...)");
  }
  try {
    auto job = collectives::Worker::prepare([this, call = std::move(call)] { call(*this); });
    CollectiveRequest request;
    request.state_ = job.front().request;
    state_->worker.enqueue(std::move(job));
    return request;
  } catch (...) {
    state_->worker.enqueue_refusal();
    throw;
  }
}

namespace {

// Even the object that holds the call may find no memory.
template <class Call>
CollectiveRequest begin(Collectives& on, Call call) {
  std::function<void(Collectives&)> held;
  try {
    held = std::move(call);
  } catch (...) {
    on.state().worker.enqueue_refusal();
    throw;
  }
  return on.start(std::move(held));
}

}  // namespace

CollectiveRequest Collectives::start_barrier() {
  return begin(*this, [](Collectives& self) { self.barrier(); });
}

CollectiveRequest Collectives::start_allreduce(const void* send, void* receive, std::size_t count,
                                               ElementType type, ReductionOp op) {
  return begin(*this, [=](Collectives& self) { self.allreduce(send, receive, count, type, op); });
}

CollectiveRequest Collectives::start_reduce(const void* send, void* receive, std::size_t count,
                                            ElementType type, ReductionOp op, int root) {
  return begin(*this,
               [=](Collectives& self) { self.reduce(send, receive, count, type, op, root); });
}

CollectiveRequest Collectives::start_broadcast(void* data, std::size_t bytes, int root) {
  return begin(*this, [=](Collectives& self) { self.broadcast(data, bytes, root); });
}

CollectiveRequest Collectives::start_allgather(const void* send, void* receive,
                                               std::size_t bytes_each) {
  return begin(*this, [=](Collectives& self) { self.allgather(send, receive, bytes_each); });
}

CollectiveRequest Collectives::start_alltoall(const void* send, void* receive,
                                              std::size_t bytes_each) {
  return begin(*this, [=](Collectives& self) { self.alltoall(send, receive, bytes_each); });
}

CollectiveRequest Collectives::start_reduce_scatter_block(const void* send, void* receive,
                                                          std::size_t count, ElementType type,
                                                          ReductionOp op) {
  return begin(
      *this, [=](Collectives& self) { self.reduce_scatter_block(send, receive, count, type, op); });
}

}  // namespace ropewalk
