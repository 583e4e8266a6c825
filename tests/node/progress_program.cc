// Tests that a rank that waits progresses the MPI underneath, whatever lies unreceived in its
// queue: in a collective of Collectives, and in the halo exchanges that store into each other's
// memory. Without progress both ranks wait for ever, and the alarm says where.
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <functional>
#include <stdexcept>
#include <string>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/process.hpp"

namespace {

namespace mpi = ropewalk::mpi;

constexpr std::size_t bytes = std::size_t{8} << 20;  // a rendezvous in every MPI
constexpr unsigned seconds_to_end = 60;
const char* under_way = "";

void say_and_leave(int) {
  const char text[] = "progress: no end of: ";
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  (void)!write(STDERR_FILENO, under_way, std::strlen(under_way));
  (void)!write(STDERR_FILENO, "\n", 1);
  std::_Exit(EXIT_FAILURE);
}

void require(bool holds, const char* what) {
  if (!holds) throw std::runtime_error(std::string(under_way) + ": not so: " + what);
}

// Rank 0 starts a send too long to be buffered and waits in `meet`; rank 1 receives it first.
void send_and_meet(int rank, const std::function<void()>& meet) {
  std::vector<std::byte> message(bytes, std::byte{rank == 0});
  mpi::Request request = mpi::request_null();
  if (rank == 0) request = mpi::isend(message.data(), bytes, 1, 7, mpi::comm_world());
  if (rank == 1) mpi::receive(message.data(), bytes, 0, 7, mpi::comm_world());
  meet();
  mpi::wait(request);
  require(rank > 1 || message.back() == std::byte{1}, "the message has come");
}

// Rank 0 has posted a receive and waits in `meet`; rank 1 first sends what rank 0 receives
// afterwards only, so that a probe for any message matches, and then what rank 0 has posted.
void receive_and_meet(int rank, const std::function<void()>& meet) {
  std::vector<std::byte> message(bytes, std::byte{rank == 1});
  mpi::Request posted = mpi::request_null(), unreceived = mpi::request_null();
  int word = rank;
  if (rank == 0) posted = mpi::ireceive(message.data(), bytes, 1, 7, mpi::comm_world());
  if (rank == 1) {
    unreceived = mpi::isend(&word, sizeof word, 0, 8, mpi::comm_world());
    usleep(100000);
    mpi::Request sent = mpi::isend(message.data(), bytes, 0, 7, mpi::comm_world());
    mpi::wait(sent);
  }
  meet();
  if (rank == 0) mpi::receive(&word, sizeof word, 1, 8, mpi::comm_world());
  mpi::wait(unreceived);
  mpi::wait(posted);
  require(rank > 1 || (word == 1 && message.back() == std::byte{1}), "both messages have come");
}

void run(const char* name, int rank, const std::function<void()>& meet) {
  under_way = name;
  alarm(seconds_to_end);
  for (int round = 0; round < 3; ++round) send_and_meet(rank, meet);
  for (int round = 0; round < 2; ++round) receive_and_meet(rank, meet);
  alarm(0);
}

void run_collectives(ropewalk::Communicator world) {
  ropewalk::Collectives communicator(world);
  run("allreduce", world.rank(), [&] {
    double sum = 1;
    communicator.allreduce(ropewalk::in_place, &sum, 1, ropewalk::ElementType::float64,
                           ropewalk::ReductionOp::sum);
    require(sum == communicator.size(), "the sum");
  });
}

void run_halo(const char* name, ropewalk::Communicator world, ropewalk::Strategy strategy) {
  ropewalk::EndpointSet endpoints(world, {.lanes = 1, .threads = false, .pin = false});
  ropewalk::CartesianGrid grid(world, {world.size()}, {true});
  constexpr std::size_t face = 4096;
  ropewalk::Halo halo(grid, endpoints, ropewalk::HaloBuffers{{face, face}},
                      {strategy, ropewalk::Corners::no});
  run(name, world.rank(), [&] {
    for (int direction = 0; direction < 2; ++direction) {
      std::memset(halo.send_buffer(direction), grid.rank() + 1, face);
    }
    halo.start();
    halo.wait();
    for (int direction = 0; direction < 2; ++direction) {
      const auto* ghosts = static_cast<const char*>(halo.receive_buffer(direction));
      require(ghosts[face - 1] == grid.neighbour(0, direction == 0 ? -1 : 1) + 1 ||
                  ghosts[face - 1] == grid.neighbour(0, direction == 0 ? 1 : -1) + 1,
              "the face is a neighbour's");
    }
  });
}

}  // namespace

int main() {
  std::signal(SIGALRM, &say_and_leave);
  try {
    const ropewalk::Process process;
    run_collectives(process.world());
    run_halo("halo, direct", process.world(), ropewalk::Strategy::direct);
    run_halo("halo, put", process.world(), ropewalk::Strategy::put);
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "progress: %s\n", error.what());
    std::_Exit(EXIT_FAILURE);  // no MPI_Finalize: others may wait for this rank
  }
}
