// Collectives that are set up, started and waited for in steps of their own: blocking, nonblocking
// and persistent ones.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "actions.hpp"

namespace mixed {

enum class Mode { blocking, nonblocking, persistent };

// MPI 4 has persistent collectives, and Open MPI 5 has them before it is an MPI 4.
#if MPI_VERSION >= 4 || (defined OMPI_MAJOR_VERSION && OMPI_MAJOR_VERSION >= 5)
#define MIXED_PERSISTENT 1
#define MIXED_INIT(name, ...) MPI_##name##_init(__VA_ARGS__, MPI_INFO_NULL, &request)
#else
#define MIXED_PERSISTENT 0
#define MIXED_INIT(name, ...) MPI_##name(__VA_ARGS__)
#endif
// Calls MPI_`name`, MPI_`started` or MPI_`name`_init, as `mode` and `request` say.
#define MIXED_CALL(name, started, ...)                                                 \
  static_cast<void>(mode == Mode::blocking      ? MPI_##name(__VA_ARGS__)              \
                    : mode == Mode::nonblocking ? MPI_##started(__VA_ARGS__, &request) \
                                                : MIXED_INIT(name, __VA_ARGS__))

// The neighbours of a rank in a communicator with a topology; below 0 there is none.
struct Neighbours {
  std::vector<int> sources, destinations;
};

class Operation {
 public:
  virtual ~Operation() = default;
  virtual std::string text() const = 0;
  // Makes the buffers of this rank.
  virtual void prepare(const Comm&) = 0;
  virtual void fill(std::size_t round) = 0;
  // A blocking call is over afterwards, a nonblocking one under way, a persistent one set up.
  virtual void call(Mode mode, MPI_Comm comm) = 0;
  virtual void check(std::size_t round) = 0;
  MPI_Request request = MPI_REQUEST_NULL;
};

std::unique_ptr<Operation> draw_movement(Random&);
// `around` gets the neighbours of this rank before the operation is prepared.
std::unique_ptr<Operation> draw_neighbour_movement(Random&, std::shared_ptr<const Neighbours>);
std::unique_ptr<Operation> draw_combination(Random&);

}  // namespace mixed
