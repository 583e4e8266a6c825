// Nonblocking collectives: the blocking ones, on the worker of the communicator.
#include <functional>
#include <utility>

#include "collectives/algorithms.hpp"
#include "collectives/checks.hpp"
#include "collectives/state.hpp"

namespace ropewalk {

CollectiveRequest NodeCommunicator::start(std::function<void(NodeCommunicator&)> call) {
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

// Even what holds the call may find no memory.
template <class Call>
CollectiveRequest begin(NodeCommunicator& on, Call call) {
  std::function<void(NodeCommunicator&)> held;
  try {
    held = std::move(call);
  } catch (...) {
    on.state().worker.enqueue_refusal();
    throw;
  }
  return on.start(std::move(held));
}

}  // namespace

CollectiveRequest NodeCommunicator::start_barrier() {
  return begin(*this, [](NodeCommunicator& self) { self.barrier(); });
}

CollectiveRequest NodeCommunicator::start_allreduce(const void* send, void* receive,
                                                    std::size_t count, ElementType type,
                                                    ReductionOp op) {
  return begin(*this,
               [=](NodeCommunicator& self) { self.allreduce(send, receive, count, type, op); });
}

CollectiveRequest NodeCommunicator::start_reduce(const void* send, void* receive, std::size_t count,
                                                 ElementType type, ReductionOp op, int root) {
  return begin(*this,
               [=](NodeCommunicator& self) { self.reduce(send, receive, count, type, op, root); });
}

CollectiveRequest NodeCommunicator::start_broadcast(void* data, std::size_t bytes, int root) {
  return begin(*this, [=](NodeCommunicator& self) { self.broadcast(data, bytes, root); });
}

CollectiveRequest NodeCommunicator::start_allgather(const void* send, void* receive,
                                                    std::size_t bytes_each) {
  return begin(*this, [=](NodeCommunicator& self) { self.allgather(send, receive, bytes_each); });
}

CollectiveRequest NodeCommunicator::start_alltoall(const void* send, void* receive,
                                                   std::size_t bytes_each) {
  return begin(*this, [=](NodeCommunicator& self) { self.alltoall(send, receive, bytes_each); });
}

CollectiveRequest NodeCommunicator::start_reduce_scatter_block(const void* send, void* receive,
                                                               std::size_t count, ElementType type,
                                                               ReductionOp op) {
  return begin(*this, [=](NodeCommunicator& self) {
    self.reduce_scatter_block(send, receive, count, type, op);
  });
}

}  // namespace ropewalk
