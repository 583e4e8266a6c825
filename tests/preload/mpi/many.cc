// many: communicators over nodes, more than are served, and as many as MPI has. Run with
// ROPEWALK_NODES=1.
#include <vector>

#include "the_mpi.hpp"

namespace {

using namespace test;

void use(MPI_Comm comm) {
  const int size = size_of(comm);
  for (int i = 0; i < 3; ++i) {
    int sum = 0;
    MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect(sum == i * size, "an allreduce");
  }
}

// All of them are in use at once.
void used_at_once() {
  constexpr int most = 150;
  std::vector<MPI_Comm> comms(most);
  for (MPI_Comm& comm : comms) {
    PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
    use(comm);
  }
  std::vector<double> mine(50'000, 1.0);
  std::vector<double> sum(mine.size());
  for (MPI_Comm& comm : comms) {
    MPI_Allreduce(mine.data(), sum.data(), 50'000, MPI_DOUBLE, MPI_SUM, comm);
    expect(sum.front() == size_of(comm) && sum.back() == size_of(comm), "a large allreduce");
    MPI_Comm_free(&comm);
  }
}

// Takes communicators up to the last one that MPI has. Its errors end the program, as they do by
// default.
void all_that_there_are() {
  constexpr int many = 2100;  // MPICH has 2048
  std::vector<MPI_Comm> comms;
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  for (int i = 0; i < many; ++i) {
    MPI_Comm made = MPI_COMM_NULL;
    if (PMPI_Comm_dup(MPI_COMM_WORLD, &made) != MPI_SUCCESS) break;
    comms.push_back(made);
  }
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_ARE_FATAL);
  PMPI_Comm_set_errhandler(comms.back(), MPI_ERRORS_ARE_FATAL);
  use(comms.back());
  MPI_Errhandler handler;
  PMPI_Comm_get_errhandler(comms.back(), &handler);
  expect(handler == MPI_ERRORS_ARE_FATAL, "the error handler that the program has set");
  PMPI_Errhandler_free(&handler);
  for (MPI_Comm& comm : comms) PMPI_Comm_free(&comm);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  end_after(100);
  now("communicators used at once");
  if (argc < 2) used_at_once();
  now("all communicators that there are");
  all_that_there_are();
  const bool failed = any_failure();
  MPI_Finalize();
  return failed ? 1 : 0;
}
