// differential [--cases N] [--seed S] [--only K] [--verbose 1] [--plain 1] makes random collectives
// by MPI_X, and compares each with PMPI_X of the same arguments, byte for byte.
//
// Every rank draws the same cases. A rank names what differs, with the command that runs it again,
// and every rank exits with 1. A case that hangs ends the job after a time, and is named too. With
// --plain the drop-in need not be there.
#include <dlfcn.h>

#include "generator/mpi/run.hpp"

namespace {

using namespace test;

std::string make(const generator::Call& call) {
  const int code = generator::call_mpi(call);
  if (code == MPI_SUCCESS) return "";
  std::array<char, MPI_MAX_ERROR_STRING + 1> text{};
  int length = 0;
  PMPI_Error_string(code, text.data(), &length);
  return std::string("drop-in: ") + text.data();
}

// Takes memory of malloc, which may be the drop-in's, or of MPI.
generator::Allocator memory() {
  return {[](std::size_t bytes, bool by_mpi) {
            void* start = nullptr;
            if (!by_mpi) return std::malloc(bytes);
            MPI_Alloc_mem(static_cast<MPI_Aint>(bytes), MPI_INFO_NULL, &start);
            return start;
          },
          [](void* start, std::size_t, bool by_mpi) {
            if (by_mpi) {
              MPI_Free_mem(start);
            } else {
              std::free(start);
            }
          }};
}

// ---- intercommunicators

void compare(const char* what, const std::vector<int>& ours, const std::vector<int>& theirs) {
  expect(ours == theirs, std::string(what) + " between two groups differs");
}

void run_between(MPI_Comm between, bool first_group, int far) {
  const int rank = rank_of(between);
  const int size = size_of(between);
  const auto many = static_cast<std::size_t>(far);
  const int root = !first_group ? 0 : rank == 0 ? MPI_ROOT : MPI_PROC_NULL;
  for (int i = 0; i < 4; ++i) {
    const std::vector<int> sent(many, rank * 10 + i + (first_group ? 1000 : 0));
    const auto filled = [&] { return std::vector<int>(many, -1); };
    std::vector<int> a = filled();
    std::vector<int> b = filled();
    MPI_Barrier(between);
    a[0] = b[0] = sent[0];
    MPI_Bcast(a.data(), 1, MPI_INT, root, between);
    PMPI_Bcast(b.data(), 1, MPI_INT, root, between);
    compare("MPI_Bcast", a, b);
    MPI_Allreduce(sent.data(), a.data(), 1, MPI_INT, MPI_SUM, between);
    PMPI_Allreduce(sent.data(), b.data(), 1, MPI_INT, MPI_SUM, between);
    compare("MPI_Allreduce", a, b);
    a = b = filled();
    MPI_Allgather(sent.data(), 1, MPI_INT, a.data(), 1, MPI_INT, between);
    PMPI_Allgather(sent.data(), 1, MPI_INT, b.data(), 1, MPI_INT, between);
    compare("MPI_Allgather", a, b);
    a = b = filled();
    MPI_Alltoall(sent.data(), 1, MPI_INT, a.data(), 1, MPI_INT, between);
    PMPI_Alltoall(sent.data(), 1, MPI_INT, b.data(), 1, MPI_INT, between);
    compare("MPI_Alltoall", a, b);
  }
  expect(size > 0, "size");
}

void run_intercommunicator() {
  const int rank = rank_of(MPI_COMM_WORLD);
  const int size = size_of(MPI_COMM_WORLD);
  if (size < 2) return;
  now("an intercommunicator");
  const int first = (size + 1) / 2;
  const bool in_first = rank < first;
  MPI_Comm group;
  MPI_Comm between;
  PMPI_Comm_split(MPI_COMM_WORLD, in_first ? 0 : 1, rank, &group);
  PMPI_Intercomm_create(group, 0, MPI_COMM_WORLD, in_first ? first : 0, 5, &between);
  run_between(between, in_first, in_first ? size - first : first);
  MPI_Comm_free(&between);
  MPI_Comm_free(&group);
}

// Whether MPI_X is another library's than PMPI_X.
bool is_intercepted() {
  Dl_info ours{};
  Dl_info theirs{};
  dladdr(dlsym(RTLD_DEFAULT, "MPI_Allreduce"), &ours);
  dladdr(dlsym(RTLD_DEFAULT, "PMPI_Allreduce"), &theirs);
  return ours.dli_fbase != theirs.dli_fbase;
}

}  // namespace

int main(int argc, char** argv) {
  const generator::Options options = generator::parse(argc, argv);
  MPI_Init(&argc, &argv);
  end_after(200);
  PMPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  expect(options.plain || is_intercepted(), "the drop-in is not in front of MPI");
  generator::Limits limits{generator::Interface::mpi};
  limits.communicators = generator::Communicators::kinds;
  limits.large_counts = generator::has_large();
  // One round: the first collectives of a communicator are passed, so communicators stay.
  generator::run_cases(options, {limits, options.cases, memory(), &make,
                                 [](const generator::Communicators&) {}, [] {}});
  run_intercommunicator();
  const bool failed = any_failure();
  MPI_Finalize();
  return failed ? 1 : 0;
}
