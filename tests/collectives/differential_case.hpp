// A random collective for the differential test: what all ranks draw alike, and how it is run.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "collectives/cases.hpp"
#include "collectives/differential_types.hpp"

namespace ropewalk::test {

// A communicator as MPI and as ropewalk have it.
struct Pair {
  std::string name;
  mpi::Comm mpi;
  rw_comm* rw = nullptr;
  int rank = 0;
  int size = 1;
};

// What the ranks of a communicator draw from the seed of a case. Ranks of another part of a split
// draw the same numbers, and make of them what suits their communicator.
struct Differential {
  Differential(const Catalogue&, std::uint64_t seed, std::size_t communicators);

  std::uint64_t seed;
  std::size_t communicator;
  Collective collective;
  bool is_reduction;
  bool mixed;  // a movement with another derived type of the same signature on each rank
  std::size_t type;
  std::size_t op;
  std::size_t target_bytes;  // of a rank's buffer or block; counts lie around it
  std::uint64_t send_in_arena;
  std::uint64_t receive_in_arena;
  std::size_t skew;  // scalars that buffers are off their alignment by
  bool in_place;
  bool mpi_in_place;  // said with MPI's own value
  bool nonblocking;

  int root(int ranks) const { return static_cast<int>(hash(1, 0) % static_cast<unsigned>(ranks)); }
  // Elements of the call; or of the block from one rank to another.
  std::size_t count(const TypeEntry&, int ranks) const;
  std::size_t count(const TypeEntry&, int ranks, std::uint64_t from, std::uint64_t to) const;
  std::uint64_t hash(std::uint64_t what, std::uint64_t index) const;
  std::string text(const Catalogue&, const Pair&) const;
};

// Runs it with ropewalk and with MPI on this rank: "" when both leave the same bytes in both
// buffers, gaps and guards included.
std::string run(const Catalogue&, const Differential&, const Pair&);

}  // namespace ropewalk::test
