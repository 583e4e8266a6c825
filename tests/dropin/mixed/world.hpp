// The communicators of a run, what this rank has found wrong, and the watch for hangs.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "the_mpi.hpp"

namespace mixed {

using Ranks = std::uint32_t;  // a set of ranks of MPI_COMM_WORLD; bit 0 is rank 0
inline constexpr int most_ranks = 32;

// Ranks of one communicator, as ranks of MPI_COMM_WORLD in the communicator's order.
struct Group {
  std::vector<int> world_ranks;
  int size() const { return static_cast<int>(world_ranks.size()); }
  Ranks ranks() const;
  int index_of(int world_rank) const;  // -1 where it is not of them
};

// A communicator as all ranks see it: a split has made several groups.
struct Comm {
  std::string name;
  std::vector<Group> groups;
  MPI_Comm handle = MPI_COMM_NULL;  // this rank's
  const Group* own = nullptr;       // this rank's group; null where it has none
  int index = -1;                   // of this rank in it
  Ranks ranks() const;              // of all groups
};

extern int world_rank, world_size;
// Every send is a synchronous one: what then ends counts on no MPI's buffers.
extern bool synchronous;

// Errors of MPI say in which step they came, and end the program.
void tell_errors();

std::vector<Comm> make_comms();  // the first is MPI_COMM_WORLD, the second its duplicate
void free_comms(std::vector<Comm>&);
// Duplicates for what receives any message of anybody; nothing else goes over them.
std::vector<Comm> make_exclusive_comms(int number);
// The comm as this rank sees it, of the groups that all ranks know.
void find_own(Comm&);

// The step that this rank is in; told by the watch and with failures.
void enter(std::uint64_t seed, std::size_t step, const std::string& text);
void expect(bool holds, const char* what);
int failures();

// From now on a step sequence that takes longer is a hang: each rank says where it stands and,
// after the seconds to linger (for a debugger), ends with status 1. 0 seconds: no watch.
void watch(unsigned seconds, unsigned linger);

}  // namespace mixed
