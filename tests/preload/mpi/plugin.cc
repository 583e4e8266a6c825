// This is an extension module as Python loads it: it is linked to MPI, while nothing else in the
// process is. Where ROPEWALK_TEST_PROGRAM is defined it is a program of its own.
#include <dlfcn.h>

#include "the_mpi.hpp"

extern "C" __attribute__((visibility("default"))) int test_run(int tool_expects) {
  using namespace test;
  MPI_Init(nullptr, nullptr);
  end_after(60);
  const int size = size_of(MPI_COMM_WORLD);
  for (int i = 0; i < 10; ++i) {
    int sum = 0;
    MPI_Allreduce(&i, &sum, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
    expect(sum == i * size, "an allreduce");
    std::array<double, 7> data{};
    if (rank_of(MPI_COMM_WORLD) == 0) data.fill(i);
    MPI_Bcast(data.data(), 7, MPI_DOUBLE, 0, MPI_COMM_WORLD);
    expect(data[6] == i, "a broadcast");
  }
  for (int i = 0; i < 4; ++i) MPI_Barrier(MPI_COMM_WORLD);
  if (auto* calls = reinterpret_cast<int (*)()>(dlsym(RTLD_DEFAULT, "test_tool_calls"))) {
    expect(calls() == tool_expects, "the tool saw " + std::to_string(calls()) + " calls");
  }
  const bool failed = any_failure();
  MPI_Finalize();
  return failed ? 1 : 0;
}

#ifdef ROPEWALK_TEST_PROGRAM
int main(int argc, char** argv) { return test_run(argc > 1 ? std::atoi(argv[1]) : 0); }
#endif
