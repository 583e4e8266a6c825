// Runs random collectives by some function and by PMPI_X of the same arguments, and compares both
// buffers byte for byte, gaps and guards included.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generator/buffers.hpp"
#include "generator/mpi/communicators.hpp"
#include "generator/mpi/handles.hpp"

namespace generator {

// One side of a call as MPI takes it; what is empty is a null pointer.
struct Argument {
  void* data = nullptr;
  int count = 0;
  MPI_Datatype type = MPI_DATATYPE_NULL;
  std::vector<int> counts;
  std::vector<int> displacements;
};

struct Call {
  Collective collective;
  Argument send;
  Argument receive;
  MPI_Op op;
  int root;
  MPI_Comm comm;
  const Case* drawn;
};

int call_pmpi(const Call&);
int call_mpi(const Call&);  // MPI_X, or MPI_X_c where the case says so
bool has_large();           // MPI_X_c, from the MPI or from whom it may be

// What is under test.
struct Executor {
  Limits limits;
  std::uint64_t cases_a_round;  // then communicators are made anew
  Allocator memory;
  // Returns "" or what went wrong. Before it, `begin`, and after the last of a round, `end`.
  std::string (*make)(const Call&);
  void (*begin)(const Communicators&);
  void (*end)();
};

// The command line: [--cases N] [--seed S] [--only K] [--verbose 1] [--plain 1].
struct Options {
  std::uint64_t cases = 200;
  std::uint64_t seed = 1;
  std::int64_t only = -1;
  bool verbose = false;
  bool plain = false;
};
Options parse(int argc, char** argv);

// Every rank draws the same cases. What differs is named by its rank, with what runs it again.
void run_cases(const Options&, const Executor&);

}  // namespace generator
