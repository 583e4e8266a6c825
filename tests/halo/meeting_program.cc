// A rank in wait() needs only that its neighbours have started. Half of the ranks wait for their
// ghosts and send a message afterwards; the others receive that message before they wait. If wait()
// needed neighbours that are in wait() as well, all would hang.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <stdexcept>
#include <string>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/process.hpp"

namespace {

namespace mpi = ropewalk::mpi;
using ropewalk::Strategy;

// The ranks have a ring of rows, with ghosts on both sides.
class Ring {
 public:
  Ring(ropewalk::Communicator world, ropewalk::EndpointSet& endpoints, std::size_t ghosts,
       Strategy strategy)
      : grid_(world, {world.size()}, {true}),
        ghosts_(ghosts),
        row_(4 * ghosts),
        halo_(grid_, endpoints,
              std::vector<ropewalk::Field>{{row_.data(), 8, {2 * ghosts}, {ghosts}}},
              {strategy, ropewalk::Corners::no}) {}

  void meet(int round) {
    for (std::size_t i = 0; i < row_.size(); ++i) row_[i] = value(grid_.rank(), round);
    halo_.start();
    const int next = grid_.neighbour(0, 1);
    const int previous = grid_.neighbour(0, -1);
    int word = round;
    if (sends(grid_.rank(), round)) {
      halo_.wait();
      if (!sends(next, round)) mpi::send(&word, sizeof word, next, 1, mpi::comm_world());
    } else {
      if (sends(previous, round)) {
        mpi::receive(&word, sizeof word, previous, 1, mpi::comm_world());
      }
      halo_.wait();
    }
    check(value(previous, round), 0);
    check(value(next, round), 3 * ghosts_);
  }

 private:
  static double value(int rank, int round) { return rank * 100.0 + round; }
  static bool sends(int rank, int round) { return (rank + round) % 2 == 0; }
  void check(double expected, std::size_t first) const {
    for (std::size_t i = first; i < first + ghosts_; ++i) {
      if (row_[i] != expected) {
        throw std::runtime_error("ghost " + std::to_string(i) + ": " + std::to_string(row_[i]) +
                                 ", expected " + std::to_string(expected));
      }
    }
  }

  ropewalk::CartesianGrid grid_;
  std::size_t ghosts_;
  ropewalk::Buffer<double> row_;
  ropewalk::Halo halo_;
};

void run(ropewalk::Communicator world) {
  ropewalk::EndpointSet endpoints(world, {.lanes = 1, .threads = false, .pin = false});
  for (const Strategy strategy : {Strategy::direct, Strategy::automatic, Strategy::concurrent}) {
    for (const std::size_t ghosts : {std::size_t{1}, std::size_t{100000}}) {
      Ring ring(world, endpoints, ghosts, strategy);
      for (int round = 0; round < 10; ++round) ring.meet(round);
    }
  }
}

}  // namespace

int main() {
  try {
    const ropewalk::Process process;
    run(process.world());
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "meeting: %s\n", error.what());
    std::_Exit(EXIT_FAILURE);  // no MPI_Finalize: others may wait for this rank
  }
}
