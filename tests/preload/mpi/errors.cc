// Wrong calls by MPI_X and by PMPI_X: the same class of error, through MPI_ERRORS_RETURN and
// through an error handler of the program, which is called once, with the communicator. All ranks
// make the same mistakes.
#include <dlfcn.h>

#include <vector>

#include "the_mpi.hpp"

namespace {

using namespace test;

int handled = 0;
int handled_class = 0;
MPI_Comm handled_comm = MPI_COMM_NULL;

void note(MPI_Comm* comm, int* code, ...) {
  ++handled;
  handled_comm = *comm;
  PMPI_Error_class(*code, &handled_class);
}

int class_of(int code) {
  int result = 0;
  PMPI_Error_class(code, &result);
  return result;
}

struct Wrong {
  const char* name;
  int (*by_us)(MPI_Comm);
  int (*by_mpi)(MPI_Comm);
};

std::array<int, 64> from{};
std::array<int, 1024> into{};
std::array<int, 64> counts{};
std::array<int, 64> places{};
MPI_Datatype pair_of_ints = MPI_DATATYPE_NULL;

#define WRONG(name, ...)                          \
  Wrong {                                         \
#name " (" #__VA_ARGS__ ")",                    \
        [](MPI_Comm comm) { return MPI_##name(__VA_ARGS__, comm); }, \
        [](MPI_Comm comm) { return PMPI_##name(__VA_ARGS__, comm); } \
  }

const std::vector<Wrong>& wrong_calls() {
  static const std::vector<Wrong> calls = {
#ifdef OPEN_MPI  // MPICH 5.0.2 ends the program for reductions without a type or with such counts
      WRONG(Allreduce, from.data(), into.data(), -1, MPI_INT, MPI_SUM),
      WRONG(Allreduce, from.data(), into.data(), 1, MPI_DATATYPE_NULL, MPI_SUM),
      WRONG(Scan, from.data(), into.data(), -1, MPI_INT, MPI_SUM),
      WRONG(Exscan, from.data(), into.data(), 1, MPI_DATATYPE_NULL, MPI_SUM),
      WRONG(Reduce_scatter_block, from.data(), into.data(), -1, MPI_INT, MPI_SUM),
      WRONG(Reduce, from.data(), into.data(), -3, MPI_INT, MPI_SUM, 0),
      WRONG(Reduce, from.data(), into.data(), 1, MPI_DATATYPE_NULL, MPI_SUM, 0),
#endif
      WRONG(Bcast, from.data(), -1, MPI_INT, 0),
      WRONG(Bcast, from.data(), 1, MPI_DATATYPE_NULL, 0),
      WRONG(Bcast, from.data(), 1, MPI_INT, -1),
      WRONG(Bcast, from.data(), 1, MPI_INT, 1000),
      WRONG(Bcast, from.data(), 1, MPI_INT, MPI_PROC_NULL),
      WRONG(Reduce, from.data(), into.data(), 1, MPI_INT, MPI_OP_NULL, 0),
      WRONG(Reduce, from.data(), into.data(), 1, MPI_INT, MPI_SUM, 77),
      WRONG(Allreduce, from.data(), into.data(), 1, MPI_INT, MPI_OP_NULL),
      WRONG(Allreduce, from.data(), into.data(), 1, MPI_DOUBLE, MPI_BAND),
      WRONG(Allreduce, from.data(), into.data(), 1, MPI_INT, MPI_MAXLOC),
      WRONG(Allreduce, from.data(), into.data(), 1, pair_of_ints, MPI_SUM),
      WRONG(Scan, from.data(), into.data(), 1, MPI_INT, MPI_OP_NULL),
      WRONG(Reduce_scatter, from.data(), into.data(), counts.data(), MPI_INT, MPI_OP_NULL),
      WRONG(Allgather, from.data(), -1, MPI_INT, into.data(), 1, MPI_INT),
      WRONG(Allgather, from.data(), 1, MPI_DATATYPE_NULL, into.data(), 1, MPI_INT),
      WRONG(Allgather, from.data(), 1, MPI_INT, into.data(), 1, MPI_DATATYPE_NULL),
      WRONG(Allgather, from.data(), 1, MPI_INT, into.data(), -1, MPI_INT),
      WRONG(Allgatherv, from.data(), 1, MPI_DATATYPE_NULL, into.data(), counts.data(),
            places.data(), MPI_INT),
      WRONG(Gather, from.data(), 1, MPI_INT, into.data(), 1, MPI_INT, -5),
      WRONG(Gather, from.data(), 1, MPI_DATATYPE_NULL, into.data(), 1, MPI_INT, 0),
      WRONG(Gatherv, from.data(), 1, MPI_INT, into.data(), counts.data(), places.data(), MPI_INT,
            1000),
      WRONG(Scatter, from.data(), 1, MPI_INT, into.data(), 1, MPI_INT, 1000),
      WRONG(Scatter, from.data(), 1, MPI_INT, into.data(), 1, MPI_DATATYPE_NULL, 0),
      WRONG(Scatterv, from.data(), counts.data(), places.data(), MPI_INT, into.data(), 1, MPI_INT,
            -2),
      WRONG(Alltoall, from.data(), 1, MPI_DATATYPE_NULL, into.data(), 1, MPI_INT),
      WRONG(Alltoall, from.data(), -1, MPI_INT, into.data(), -1, MPI_INT),
      WRONG(Alltoallv, from.data(), counts.data(), places.data(), MPI_DATATYPE_NULL, into.data(),
            counts.data(), places.data(), MPI_INT)};
  return calls;
}

// A served call, so that a wrong one is not the first of its communicator, and nobody is lost.
void right_calls(MPI_Comm comm) {
  for (int i = 0; i < 3; ++i) {
    int sum = 0;
    const int one = 1;
    const int code = MPI_Allreduce(&one, &sum, 1, MPI_INT, MPI_SUM, comm);
    expect(code == MPI_SUCCESS && sum == size_of(comm), "a right call after a wrong one");
  }
}

void check_returned(MPI_Comm comm) {
  PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  for (const Wrong& wrong : wrong_calls()) {
    now(wrong.name);
    right_calls(comm);
    const int theirs = class_of(wrong.by_mpi(comm));
    // What MPI itself does not find, or not on every rank, is nobody's error.
    int least = theirs;
    PMPI_Allreduce(&theirs, &least, 1, MPI_INT, MPI_MIN, comm);
    if (least == MPI_SUCCESS) continue;
    const int ours = class_of(wrong.by_us(comm));
    expect(ours == theirs, std::string(wrong.name) + ": class " + std::to_string(ours) +
                               ", MPI's own " + std::to_string(theirs));
  }
}

void check_handled(MPI_Comm comm) {
  MPI_Errhandler handler;
  PMPI_Comm_create_errhandler(&note, &handler);
  int found = 0;
  for (const Wrong& wrong : wrong_calls()) {
    now(std::string(wrong.name) + " with a handler");
    PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
    right_calls(comm);
    PMPI_Comm_set_errhandler(comm, handler);
    handled = 0;
    wrong.by_mpi(comm);
    const int theirs = handled;
    const int their_class = handled_class;
    int least = theirs;
    PMPI_Allreduce(&theirs, &least, 1, MPI_INT, MPI_MIN, comm);
    if (least == 0) continue;
    handled = 0;
    handled_comm = MPI_COMM_NULL;
    wrong.by_us(comm);
    ++found;
    expect(handled == theirs, std::string(wrong.name) + ": handler called " +
                                  std::to_string(handled) + " times, by MPI " +
                                  std::to_string(theirs));
    expect(handled_comm == comm && handled_class == their_class,
           std::string(wrong.name) + ": the handler's communicator or class");
  }
  expect(found > 15, "few of the mistakes were found");
  PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  right_calls(comm);
  PMPI_Errhandler_free(&handler);
}

// Errors on what is no communicator go to MPI_COMM_WORLD's handler, or MPI_COMM_SELF's.
void check_no_communicator() {
  now("MPI_COMM_NULL");
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  PMPI_Comm_set_errhandler(MPI_COMM_SELF, MPI_ERRORS_RETURN);
  expect(class_of(MPI_Barrier(MPI_COMM_NULL)) == class_of(PMPI_Barrier(MPI_COMM_NULL)),
         "MPI_Barrier(MPI_COMM_NULL)");
  expect(class_of(MPI_Allreduce(from.data(), into.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_NULL)) ==
             class_of(PMPI_Allreduce(from.data(), into.data(), 1, MPI_INT, MPI_SUM, MPI_COMM_NULL)),
         "MPI_Allreduce(MPI_COMM_NULL)");
  right_calls(MPI_COMM_WORLD);
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  end_after(100);
  PMPI_Type_contiguous(2, MPI_INT, &pair_of_ints);
  PMPI_Type_commit(&pair_of_ints);
  counts.fill(1);
  for (std::size_t i = 0; i < places.size(); ++i) places[i] = static_cast<int>(i);
  // MPI_COMM_WORLD's and MPI_COMM_SELF's handlers end the program: an error of another communicator
  // must not come there.
  MPI_Comm comm;
  PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
  check_returned(comm);
  check_handled(comm);
  MPI_Comm_free(&comm);
  check_no_communicator();
  PMPI_Type_free(&pair_of_ints);
  const bool failed = any_failure();
  if (rank_of(MPI_COMM_WORLD) == 0) std::printf("%zu mistakes\n", wrong_calls().size());
  MPI_Finalize();
  return failed ? 1 : 0;
}
