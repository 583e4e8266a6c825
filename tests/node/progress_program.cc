// A rank that waits in a collective progresses the MPI underneath: rank 0 starts a send too long to
// be buffered and enters an allreduce; rank 1 receives it first. Without progress both wait for
// ever.
#include <cstdio>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/process.hpp"

namespace {

int exchange(ropewalk::NodeCommunicator& communicator) {
  namespace mpi = ropewalk::mpi;
  constexpr std::size_t count = std::size_t{1} << 20;  // 8 MiB: a rendezvous in every MPI
  const int rank = communicator.rank();
  std::vector<double> message(count, rank == 0 ? 3.5 : 0.0);
  mpi::Request request = mpi::request_null();
  if (rank == 0) {
    request = mpi::isend(message.data(), count * sizeof(double), 1, 7, mpi::comm_world());
  } else if (rank == 1) {
    mpi::receive(message.data(), count * sizeof(double), 0, 7, mpi::comm_world());
  }
  double sum = 1;
  communicator.allreduce(ropewalk::in_place, &sum, 1, ropewalk::ElementType::float64,
                         ropewalk::ReductionOp::sum);
  if (rank == 0) mpi::wait(request);
  const bool right = sum == communicator.size() && (rank > 1 || message.back() == 3.5);
  return right ? 0 : 1;
}

}  // namespace

int main() {
  try {
    const ropewalk::Process process;
    ropewalk::NodeCommunicator communicator(ropewalk::Communicator::world());
    int failed = 0;
    for (int round = 0; round < 5; ++round) failed |= exchange(communicator);
    return failed;
  } catch (const ropewalk::Error& error) {
    std::fprintf(stderr, "%s\n", error.what());
    return 1;
  }
}
