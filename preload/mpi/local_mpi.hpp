// Functions of MPI that the drop-in alone needs: groups, error handlers, attributes of datatypes.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "mpi/mpi.hpp"

namespace ropewalk::preload {

// Every rank of the communicator is one of this process's MPI_COMM_WORLD. Local.
bool in_this_world(mpi::Comm);

// By rank: the ranks in MPI_COMM_WORLD, undefined() for others. Local.
std::vector<int> ranks_in_world(mpi::Comm);

// Ranks whose blocks a collective names: of this rank's own group, and of the one it exchanges with
// (the same in an intracommunicator). Local.
struct GroupSizes {
  std::size_t own = 0;
  std::size_t other = 0;
};
GroupSizes group_sizes(mpi::Comm) noexcept;
// Blocks that the root of a gather or scatter names; 0 on other ranks. Local.
std::size_t blocks_at_root(mpi::Comm, int root) noexcept;

// Blocks of a neighbourhood collective on this rank, for any topology; 0 where there is none.
// Local.
struct Degrees {
  std::size_t in = 0;
  std::size_t out = 0;
};
Degrees degrees(mpi::Comm) noexcept;

// Hands an error to the communicator's error handler as MPI does, which may end the program;
// returns its code. `text` is what MPI_Error_string gives for it.
int raise(mpi::Comm, const char* text) noexcept;

// A request of MPI's for work of our own, which somebody completes with an error code, or 0: then
// MPI_Wait and MPI_Test return it. It is for programs with MPI_THREAD_MULTIPLE.
class OwnRequest {
 public:
  OwnRequest() = default;
  OwnRequest(const OwnRequest&) = delete;
  OwnRequest& operator=(const OwnRequest&) = delete;
  // Makes MPI's request, and writes the handle to where the program wants it. From then on the
  // object is MPI's. May throw Error(mpi).
  void give_to(void* request);
  // What a program finds there after an error.
  static void give_none(void* request) noexcept;
  // Any thread may call it, once. The object is gone when MPI has told the program.
  void complete(int code) noexcept;

  // This is for a request that was not given away; otherwise MPI ends it.
  ~OwnRequest() = default;

 private:
  static int query(void* self, void* status);
  static int free(void* self);

  mpi::Request request_;
  int code_ = 0;
};

// Makes the type of one element of another, which lives until it is let go of, whatever the program
// does with its own handle. It has none of the program's attributes, whose copy functions would be
// called with it.
mpi::Datatype one_of(mpi::Datatype);
void let_go(mpi::Datatype) noexcept;

// Returns an error code with this text, without calling anybody's error handler.
int error_code(const char* text) noexcept;

// An attribute of a datatype; `function` is called with it when the datatype is freed.
void set_type_attribute(mpi::Datatype, void* value, void (*function)(void*) noexcept);

}  // namespace ropewalk::preload
