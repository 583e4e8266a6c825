// Faces in memory of the halo, written, exchanged and read by ranks that do so when they like; what
// must arrive follows from the neighbour, the direction and the round alone.
#pragma once

#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <vector>

#include "halo/random_case.hpp"
#include "os/relax.hpp"
#include "ropewalk/halo.hpp"

namespace ropewalk::test {

inline std::uint8_t face_byte(int rank, std::size_t direction, std::uint64_t round,
                              std::size_t at) {
  return static_cast<std::uint8_t>(static_cast<std::size_t>(rank) * 37 + direction * 11 +
                                   round * 101 + at * 5);
}

inline void write_faces(const Halo& halo, const HaloBuffers& sizes, int rank, std::uint64_t round) {
  for (std::size_t i = 0; i < sizes.bytes.size(); ++i) {
    auto* face = static_cast<std::uint8_t*>(halo.send_buffer(static_cast<int>(i)));
    for (std::size_t at = 0; face != nullptr && at < sizes.bytes[i]; ++at) {
      face[at] = face_byte(rank, i, round, at);
    }
  }
}

// Throws where something else came.
inline void check_faces(const Halo& halo, const CartesianGrid& grid, const HaloBuffers& sizes,
                        std::uint64_t round) {
  for (std::size_t i = 0; i < sizes.bytes.size(); ++i) {
    const int from = grid.neighbour(static_cast<int>(i / 2), i % 2 == 0 ? 1 : -1);
    const auto* face = static_cast<const std::uint8_t*>(halo.receive_buffer(static_cast<int>(i)));
    const bool none = from < 0 || sizes.bytes[i] == 0;
    if ((face == nullptr) != none) throw std::logic_error("a face where there is none");
    for (std::size_t at = 0; !none && at < sizes.bytes[i]; ++at) {
      if (face[at] == face_byte(from, i ^ 1U, round, at)) continue;
      throw std::logic_error(std::string(name(halo.strategy())) + ": rank " +
                             std::to_string(grid.rank()) + " direction " + std::to_string(i) +
                             " byte " + std::to_string(at) + " round " + std::to_string(round));
    }
  }
}

inline void dawdle_a_little(std::mt19937_64& random) {
  if (random() % 2 == 0) return;
  for (unsigned pause = random() % 300; pause > 0; --pause) os::relax();
  if (random() % 8 == 0) std::this_thread::yield();
}

// Reads what came slowly, so that a neighbour that is ahead writes meanwhile; and where it was
// promised before the exchange began.
inline void exchange_faces_at_random(Halo& halo, const CartesianGrid& grid,
                                     const HaloBuffers& sizes, std::uint64_t round,
                                     std::mt19937_64& random) {
  std::vector<const void*> promised;
  for (std::size_t i = 0; i < sizes.bytes.size(); ++i) {
    promised.push_back(halo.next_receive_buffer(static_cast<int>(i)));
  }
  write_faces(halo, sizes, grid.rank(), round);
  dawdle_a_little(random);
  halo.start();
  if (random() % 3 == 0) {
    while (!halo.test()) {
    }
  }
  halo.wait();
  dawdle_a_little(random);
  for (std::size_t i = 0; i < sizes.bytes.size(); ++i) {
    if (halo.receive_buffer(static_cast<int>(i)) != promised[i]) {
      throw std::logic_error("a face came elsewhere than it was promised");
    }
  }
  check_faces(halo, grid, sizes, round);
}

struct FacesCase {
  std::vector<int> extents;
  std::vector<bool> periodic;
  HaloBuffers sizes;
};

inline FacesCase random_faces(std::mt19937_64& random, int ranks, std::size_t most) {
  FacesCase out;
  const int dimensions = 1 + static_cast<int>(random() % 6);
  out.extents = random_extents(random, ranks, dimensions);
  for (int d = 0; d < dimensions; ++d) {
    out.periodic.push_back(random() % 2 == 0);
    out.sizes.bytes.insert(out.sizes.bytes.end(), 2, random() % 4 == 0 ? 0 : 1 + random() % most);
  }
  return out;
}

}  // namespace ropewalk::test
