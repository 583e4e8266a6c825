// Random halo exchanges and what they must give, by index arithmetic on the global array alone: no
// neighbours, no directions, no messages.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::test {

struct FieldCase {
  std::size_t element_bytes;
  std::vector<std::size_t> ghost;
  std::vector<std::vector<std::size_t>> cells;  // [dimension][coordinate]: interior extents
};

struct HaloCase {
  std::uint64_t seed;
  std::vector<int> extents;
  std::vector<bool> periodic;
  std::vector<FieldCase> fields;
  Corners corners;
  Strategy strategy;
  int lanes;
  bool threads;
  std::uint64_t rounds = 1;  // with ranks that start, test and wait when they like
  int workers = 1;           // rank r has 1 + r % workers of them
  bool arena;                // fields where neighbours can map them, else in private memory

  std::string text() const;
};

struct CaseLimits {
  int dimensions = 6;
  std::size_t widest = 2;  // ghosts
  std::size_t slack = 3;   // cells of the interior beyond the ghost width
  bool threads = true;
};

// The case is the same on every rank: it follows from the seed alone.
HaloCase random_case(std::uint64_t seed, int ranks, const CaseLimits& limits = {});

// The local array of one field of a case.
class LocalField {
 public:
  LocalField(const HaloCase&, std::size_t index, const std::vector<int>& coordinates);

  Field field();
  void fill(std::uint64_t round);   // interior by global index, ghosts with a mark
  void check(std::uint64_t round);  // every byte, ghosts beyond open boundaries included; throws

 private:
  std::uint8_t expected(std::uint64_t round, const std::vector<std::size_t>& cell,
                        std::size_t byte) const;
  template <class Visit>
  void each_cell(Visit&& visit) const;

  const HaloCase& case_;
  std::size_t index_;
  std::vector<std::size_t> interior_;
  std::vector<std::size_t> ghost_;
  std::vector<std::size_t> start_;   // global coordinate of the first interior cell
  std::vector<std::size_t> global_;  // extents of the global array
  std::uint8_t* bytes_ = nullptr;
  std::size_t size_ = 0;
  std::vector<std::uint8_t> private_;
  Buffer<std::uint8_t> shared_;
};

// Runs the case on a grid over `communicator`: an exchange(), then its rounds by start/test/wait.
// Collective.
void run_case(const HaloCase&, Communicator communicator);

// All ways to divide `ranks` over the dimensions of a grid, one of them.
std::vector<int> random_extents(std::mt19937_64&, int ranks, int dimensions);

}  // namespace ropewalk::test
