// lost_program RANK: that rank is killed in the middle of its halo exchanges.
//
// Some of the others are its neighbours on its node, some on other nodes, and some only wait for
// ranks that wait for it. Each must get an error that names it, from every strategy, and another at
// the next start; then it prints one line that lost.py counts. None calls MPI_Finalize, where an
// MPI may wait for the dead.
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <string>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/endpoint.hpp"
#include "ropewalk/halo.hpp"

namespace {

using namespace ropewalk;

int victim = 0;
int rank = 0;
bool good = true;

void expect(bool holds, const std::string& what) {
  if (holds) return;
  good = false;
  std::printf("rank %d: WRONG: %s\n", rank, what.c_str());
}

// The endpoints are its own: after a failed exchange they cannot be used any more.
struct Ring {
  EndpointSet endpoints;
  CartesianGrid grid;
  Halo halo;

  Ring(Strategy strategy, bool threads, std::size_t bytes)
      : endpoints(Communicator::world(), {.lanes = 1, .threads = threads}),
        grid(Communicator::world(), {Communicator::world().size()}, {true}),
        halo(grid, endpoints, HaloBuffers{{bytes, bytes}}, {strategy, Corners::no}) {}
};

// The ghosts of an exchange that has failed are not there, whoever asks.
bool fails(Halo& halo) {
  try {
    halo.wait();
    return false;
  } catch (const Error&) {
    return true;
  }
}

// Exchanges until it throws, and once more, by wait() or by test().
void expect_error(Ring& ring, bool tests) {
  const std::string how = std::string(name(ring.halo.strategy())) + (tests ? ", test" : ", wait");
  for (int again = 0; again < 2; ++again) {
    bool started = false;
    try {
      for (int exchanges = 0; exchanges < 1000 * 1000; ++exchanges) {
        ring.halo.start();
        started = true;
        while (tests && !ring.halo.test()) {
        }
        ring.halo.wait();
        started = false;
      }
      expect(false, how + ": no error");
    } catch (const Error& error) {
      const std::string who = "rank " + std::to_string(victim) + " ";
      expect(again > 0 || (error.code() == ErrorCode::peer_dead &&
                           std::string(error.what()).find(who) != std::string::npos),
             how + ": " + error.what());
      if (tests && started) expect(fails(ring.halo), how + ": and wait() is well");
    }
  }
}

void live() {
  std::vector<std::unique_ptr<Ring>> rings;
  for (const std::size_t bytes : {std::size_t{512}, std::size_t{1} << 20}) {
    for (const Strategy strategy : {Strategy::put, Strategy::direct, Strategy::concurrent}) {
      for (const bool threads : {false, true}) {
        rings.push_back(std::make_unique<Ring>(strategy, threads, bytes));
        rings.back()->halo.exchange();
      }
    }
  }
  mpi::barrier(mpi::comm_world());
  if (rank == victim) {
    usleep(20000);  // the others wait for it
    std::raise(SIGKILL);
  }
  bool tests = false;
  for (const std::unique_ptr<Ring>& ring : rings) {
    expect_error(*ring, tests);
    tests = !tests;
  }
}  // the ends must not wait for the dead

}  // namespace

int main(int argc, char** argv) {
  victim = argc > 1 ? std::atoi(argv[1]) : 1;
  std::setvbuf(stdout, nullptr, _IOLBF, 0);
  mpi::init(mpi::ThreadLevel::multiple);
  rank = mpi::rank(mpi::comm_world());
  try {
    live();
  } catch (const std::exception& error) {
    expect(false, error.what());
  }
  std::printf("rank %d: %s\n", rank, good ? "GOOD" : "BAD");
  std::fflush(stdout);
  for (;;) pause();  // lost.py ends the job
}
