// One random collective: what all its ranks draw alike from a seed, and what each rank sends and
// receives. It is the same for the C++ interface, the C interface and MPI's own functions; what an
// interface does not have is not drawn for it.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "generator/types.hpp"

namespace generator {

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

struct Limits {
  Interface of = Interface::cpp;
  std::size_t most_bytes = std::size_t{4} << 20;  // of a rank's buffer or block
  unsigned large_percent = 3;                     // of cases above a quarter of it
  bool large_counts = false;                      // there is MPI_X_c
  std::size_t communicators = 1;
};

std::uint64_t mix(std::uint64_t value);  // splitmix64

// Ranks of another part of a split draw the same numbers, and make of them what suits their
// communicator.
struct Case {
  Case(const Catalogue&, std::uint64_t seed, const Limits&);

  Interface of;
  std::uint64_t seed;
  std::size_t communicator;
  Collective collective;
  Operation op = Operation::sum;
  std::size_t type;          // an index of the catalogue
  std::size_t target_bytes;  // of a rank's buffer or block; counts lie around it
  int exactly = -1;          // if not negative, every count is this one
  int common_root = -1;      // likewise
  bool in_place;
  bool own_in_place;  // C: said with RW_IN_PLACE, not with MPI's value
  bool own_numbers;   // C: types and operations by RW_ numbers, where there are any
  bool nonblocking;   // C++ and C: started, and waited for
  bool tested;        // its end is found by tests
  bool large;         // MPI: by MPI_X_c
  bool mixed;         // another type of the same signature on each rank; MPI: and on each side
  bool bottom;        // MPI: buffers by absolute addresses
  bool nothing;       // MPI: what is not significant is what no call could use
  bool mpi_first;     // PMPI_X before the call under test
  bool before_buffer = false;  // a reduction of a type with data before its address
  std::uint64_t send_shared;   // a bit a rank: memory that other ranks can map, where there is any
  std::uint64_t receive_shared;
  std::size_t skew;  // scalars that buffers are off their alignment by

  std::uint64_t hash(std::uint64_t what, std::uint64_t index = 0) const;
  bool reduces() const {
    return collective >= Collective::allreduce && collective <= Collective::reduce_scatter_block;
  }
  bool scatters() const {  // combines, and leaves each rank a part
    return collective == Collective::reduce_scatter ||
           collective == Collective::reduce_scatter_block;
  }
  int root(int ranks) const;
  // Signatures of the call, or of the block from one rank to another.
  int count(const Type&, int ranks) const;
  int count(const Type&, int ranks, std::uint64_t from, std::uint64_t to) const;
  const Type& agreed_type(const Catalogue&) const;  // that all ranks count by
  const Type& type_of(const Catalogue&, int rank, int side) const;
  std::string text(const Catalogue&, int rank, int ranks) const;

 private:
  void draw_type(const Catalogue&);
  void draw_operation(const Catalogue&);
};

// A run of elements.
struct Block {
  std::int64_t first;
  int count;
};

// What a rank takes part with on one side.
struct Side {
  const Type* type = nullptr;
  std::vector<Block> blocks;
  bool significant = true;  // else any garbage will do
  bool stays = false;       // in place
  bool by_vector = false;
};

struct Plan {
  Side send;
  Side receive;
};
Plan plan(const Catalogue&, const Case&, int rank, int ranks);

// How many elements a reduction gives a rank, and how many it gives in all before the scattering.
struct Shares {
  std::vector<int> each;
  int before(int rank) const;
  int all() const { return before(static_cast<int>(each.size())); }
};
Shares shares(const Case&, const Type&, int ranks);

}  // namespace generator
