// Nonblocking collectives: the blocking ones, on the worker of the communicator.
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
  CollectiveRequest request;
  request.state_ = state_->worker.enqueue([this, call = std::move(call)] { call(*this); });
  return request;
}

CollectiveRequest NodeCommunicator::start_barrier() {
  return start([](NodeCommunicator& self) { self.barrier(); });
}

CollectiveRequest NodeCommunicator::start_allreduce(const void* send, void* receive,
                                                    std::size_t count, ElementType type,
                                                    ReductionOp op) {
  return start([=](NodeCommunicator& self) { self.allreduce(send, receive, count, type, op); });
}

CollectiveRequest NodeCommunicator::start_reduce(const void* send, void* receive, std::size_t count,
                                                 ElementType type, ReductionOp op, int root) {
  return start([=](NodeCommunicator& self) { self.reduce(send, receive, count, type, op, root); });
}

CollectiveRequest NodeCommunicator::start_broadcast(void* data, std::size_t bytes, int root) {
  return start([=](NodeCommunicator& self) { self.broadcast(data, bytes, root); });
}

CollectiveRequest NodeCommunicator::start_allgather(const void* send, void* receive,
                                                    std::size_t bytes_each) {
  return start([=](NodeCommunicator& self) { self.allgather(send, receive, bytes_each); });
}

CollectiveRequest NodeCommunicator::start_alltoall(const void* send, void* receive,
                                                   std::size_t bytes_each) {
  return start([=](NodeCommunicator& self) { self.alltoall(send, receive, bytes_each); });
}

CollectiveRequest NodeCommunicator::start_reduce_scatter_block(const void* send, void* receive,
                                                               std::size_t count, ElementType type,
                                                               ReductionOp op) {
  return start(
      [=](NodeCommunicator& self) { self.reduce_scatter_block(send, receive, count, type, op); });
}

}  // namespace ropewalk
