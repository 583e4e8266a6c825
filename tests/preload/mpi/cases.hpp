// A random collective for the differential test: what all ranks draw alike, and how it is run.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "types.hpp"

namespace test {

enum class Collective {
  barrier,
  allreduce,
  reduce,
  scan,
  exscan,
  reduce_scatter,
  reduce_scatter_block,
  bcast,
  allgather,
  allgatherv,
  gather,
  gatherv,
  scatter,
  scatterv,
  alltoall,
  alltoallv
};
inline constexpr int collectives = 16;

struct Comm {
  std::string name;
  MPI_Comm handle;
  int rank = 0;
  int size = 1;
};

// What the ranks of a communicator draw from the seed of a case. Ranks of another part of a split
// draw the same numbers, and make of them what suits their communicator.
struct Case {
  Case(const Catalogue&, std::uint64_t seed, std::size_t comms);

  std::uint64_t seed;
  std::size_t comm;
  Collective collective;
  bool reduction;
  bool large;   // by MPI_X_c, where there is one
  bool mixed;   // another type of the same signature on each rank and side
  bool bottom;  // buffers by absolute addresses
  bool in_place;
  bool nothing;    // what is not significant is what no call could use
  bool mpi_first;  // PMPI_X before MPI_X
  std::size_t type;
  std::size_t op;
  std::size_t target_bytes;  // of a rank's buffer or block; counts lie around it

  std::uint64_t hash(std::uint64_t what, std::uint64_t index = 0) const;
  bool scatters() const {
    return collective == Collective::reduce_scatter ||
           collective == Collective::reduce_scatter_block;
  }
  int root(int ranks) const { return static_cast<int>(hash(1) % static_cast<unsigned>(ranks)); }
  // Signatures of the call, or of the block from one rank to another.
  int count(const Type&, int ranks) const;
  int count(const Type&, int ranks, std::uint64_t from, std::uint64_t to) const;
  const Type& type_of(const Catalogue&, int rank, int side) const;
  std::string text(const Catalogue&, const Comm&) const;
};

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
};
enum class Through { mpi_x, mpi_x_large, pmpi_x };
int make(const Call&, Through);
bool has_large();  // MPI_X_c, from the MPI or from whom it may be

// Runs it by MPI_X and by PMPI_X on this rank: "" when both leave the same bytes in both buffers,
// gaps and guards included.
std::string run(const Catalogue&, const Case&, const Comm&);

}  // namespace test
