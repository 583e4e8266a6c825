// failed_program: calls over nodes that fail while messages of theirs are on the way. Every rank
// gets an error, can end the communicator, make another, and finalise MPI: MPICH ends a program
// that frees a communicator whose messages nobody has received.
#include <cstdio>
#include <cstdlib>
#include <vector>

#include "collectives/sums_ranks.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/process.hpp"

namespace {

using namespace ropewalk;

// Every rank finds that the others call something else, and tells them: these error notices, too,
// stay unread.
bool throws_on(Collectives& on) {
  const std::size_t count = on.rank() == 0 ? 20'000 : 300'000;
  const std::vector<double> send(count);
  std::vector<double> receive(count);
  try {
    on.allreduce(send.data(), receive.data(), count, ElementType::float64, ReductionOp::sum);
  } catch (const Error&) {
    return true;
  }
  return false;
}

int failures() {
  int wrong = 0;
  for (int trial = 0; trial < 3; ++trial) {
    Collectives communicator(Communicator::world());
    wrong += communicator.nodes() < 2 || !sums_ranks(communicator) || !throws_on(communicator);
    mpi::barrier(mpi::comm_world());
  }
  return wrong;
}

}  // namespace

int main() {
  mpi::init(mpi::ThreadLevel::multiple);
  const int wrong = failures();
  mpi::finalize();
  if (wrong != 0) std::fprintf(stderr, "%d of 3 failed calls did not end as they must\n", wrong);
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
