// Runs the proofs of the operators on a real MPI, with its number of ranks on several grids.
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <functional>
#include <vector>

#include "lattice/proofs.hpp"
#include "ropewalk/process.hpp"

namespace {

using namespace ropewalk::lattice;
using namespace ropewalk::lattice::test;
using ropewalk::Communicator;
using ropewalk::Strategy;

constexpr Extents global{4, 4, 4, 8};

// Returns all grids of so many ranks whose local extents are even.
std::vector<Extents> grids(int ranks) {
  std::vector<Extents> out;
  for (const int x : {1, 2}) {
    for (const int y : {1, 2}) {
      for (const int z : {1, 2}) {
        for (const int t : {1, 2, 4}) {
          if (x * y * z * t == ranks) out.push_back({x, y, z, t});
        }
      }
    }
  }
  return out;
}

// With comm threads on two lanes: every strategy there is, and ranks whose numbers of threads
// differ.
void prove_lanes(Communicator world, const Extents& grid) {
  LatticeOptions lanes;
  lanes.endpoints = {};
  lanes.endpoints.lanes = 2;
  const Lattice lattice(global, world, grid, lanes);
  std::vector<OperatorOptions> ways(1);
  for (const ExchangeMode exchange : {ExchangeMode::sequential, ExchangeMode::overlap}) {
    for (const Strategy strategy : {Strategy::automatic, Strategy::sequential, Strategy::concurrent,
                                    Strategy::threaded, Strategy::direct, Strategy::put}) {
      ways.push_back({});
      ways.back().exchange = exchange;
      ways.back().strategy = strategy;
      ways.back().threads = 1 + (static_cast<int>(ways.size()) + world.rank()) % 3;
    }
  }
  prove_ways_equal<double>(lattice, ways);
  prove_ways_equal<float>(lattice, ways);
  for (OperatorOptions& way : ways) way.face_precision = FacePrecision::half;
  prove_ways_equal<float>(lattice, ways);
  ways.resize(3);
  prove_domain_wall_ways_equal<double>(lattice, ways);
}

// With threads of the operator that drive two lanes, and then compute.
void prove_comm_threads(Communicator world, const Extents& grid) {
  LatticeOptions lanes;
  lanes.endpoints = {.lanes = 2, .threads = false};
  const Lattice lattice(global, world, grid, lanes);
  std::vector<OperatorOptions> ways(1);
  for (const ExchangeMode exchange : {ExchangeMode::sequential, ExchangeMode::overlap}) {
    for (const Strategy strategy : {Strategy::concurrent, Strategy::put}) {
      for (const int threads : {2, 3}) {
        for (const int communicating : {1, 2}) {
          ways.push_back({});
          ways.back().exchange = exchange;
          ways.back().strategy = strategy;
          ways.back().threads = threads;
          ways.back().comm_threads = communicating;
        }
      }
    }
  }
  prove_ways_equal<double>(lattice, ways);
}

// What a grid costs is the meeting of ranks, many more than cores: the more there are, the fewer
// grids, and none of the measurements by which `automatic` chooses a strategy.
void prove(Communicator world) {
  const Whole whole(global, true, 8);
  How how;
  how.options.antiperiodic_time = true;
  how.options.strategy = Strategy::concurrent;
  const std::vector<Extents> all = grids(world.size());
  const std::size_t step = world.size() <= 4 ? 1 : (all.size() + 1) / 2;
  for (std::size_t k = 0; k < all.size(); k += step) {
    const Lattice lattice(global, world, all[k]);
    how.options.exchange = k == 0 ? ExchangeMode::overlap : ExchangeMode::sequential;
    prove_wilson<double>(whole, lattice, how);
    if (k == 0) prove_wilson<float>(whole, lattice, how);
    if (k == 0) prove_clover<double>(whole, lattice, how);
    if (k == 0) prove_domain_wall<double>(whole, lattice, Vectors::space, how);
    if (k == 0) prove_domain_wall<float>(whole, lattice, Vectors::fifth, how);
    if (k == 0) prove_identities<double>(lattice, how);
    if (k == 0) prove_free_field<double>(lattice, how);
  }
  if (world.size() == 2) prove_lanes(world, all.back());
  if (world.size() == 2) prove_comm_threads(world, all.back());
  if (world.size() == 2) {
    const Extents few{4, 4, 2, 4};
    prove_solutions(Whole(few, true, 4), Lattice(few, world, {1, 2, 1, 1}), how);
  }
}

}  // namespace

int main() {
  try {
    const ropewalk::Process process;
    prove(process.world());
    return EXIT_SUCCESS;
  } catch (const std::exception& error) {
    std::fprintf(stderr, "operators_program: %s\n", error.what());
    std::_Exit(EXIT_FAILURE);  // no MPI_Finalize: others may wait for this rank
  }
}
