// Faces in memory of the halo that threads hand over in parts, in any order, and take as they come.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <stdexcept>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "halo/random_faces.hpp"
#include "ropewalk/halo.hpp"

namespace ropewalk::test {

struct Piece {
  int direction;
  int part;
};

inline std::vector<Piece> pieces_at_random(const HaloBuffers& sizes, const CartesianGrid& grid,
                                           int parts, std::mt19937_64& random) {
  std::vector<Piece> out;
  for (std::size_t i = 0; i < sizes.bytes.size(); ++i) {
    if (sizes.bytes[i] == 0 || grid.neighbour(static_cast<int>(i / 2), i % 2 == 0 ? 1 : -1) < 0) {
      continue;
    }
    for (int part = 0; part < parts; ++part) out.push_back({static_cast<int>(i), part});
  }
  std::shuffle(out.begin(), out.end(), random);
  return out;
}

// The first byte of a part, and the first behind it.
inline std::pair<std::size_t, std::size_t> bounds(std::size_t bytes, int part, int parts) {
  const auto at = [&](int p) {
    return bytes * static_cast<std::size_t>(p) / static_cast<std::size_t>(parts);
  };
  return {at(part), at(part + 1)};
}

class Parted {
 public:
  Parted(Halo& halo, const CartesianGrid& grid, const HaloBuffers& sizes)
      : halo_(halo), grid_(grid), sizes_(sizes) {
    for (std::size_t i = 0; i < sizes.bytes.size(); ++i) {
      places_.push_back(static_cast<std::uint8_t*>(halo.send_buffer(static_cast<int>(i))));
    }
  }

  void hand_over(const Piece& piece, std::uint64_t round) {
    const auto i = static_cast<std::size_t>(piece.direction);
    const auto [first, last] = bounds(sizes_.bytes[i], piece.part, halo_.parts());
    for (std::size_t at = first; at < last; ++at) {
      places_[i][at] = face_byte(grid_.rank(), i, round, at);
    }
    halo_.ready(piece.direction, piece.part);
  }

  // Waits for the part, which lies there before the exchange is complete.
  void take(const Piece& piece, std::uint64_t round) const {
    const auto i = static_cast<std::size_t>(piece.direction);
    while (!halo_.arrived(piece.direction, piece.part)) std::this_thread::yield();
    const int from = grid_.neighbour(piece.direction / 2, piece.direction % 2 == 0 ? 1 : -1);
    const auto* face = static_cast<const std::uint8_t*>(halo_.receive_buffer(piece.direction));
    const auto [first, last] = bounds(sizes_.bytes[i], piece.part, halo_.parts());
    for (std::size_t at = first; at < last; ++at) {
      if (face[at] == face_byte(from, i ^ 1U, round, at)) continue;
      throw std::logic_error("part " + std::to_string(piece.part) + " of direction " +
                             std::to_string(i) + " came without byte " + std::to_string(at));
    }
  }

 private:
  Halo& halo_;
  const CartesianGrid& grid_;
  const HaloBuffers& sizes_;
  std::vector<std::uint8_t*> places_;
};

// Threads share out the parts, and then look at what came.
inline void exchange_by_threads(Halo& halo, const CartesianGrid& grid, const HaloBuffers& sizes,
                                std::uint64_t round, std::size_t threads, std::mt19937_64& random) {
  Parted parted(halo, grid, sizes);
  const std::vector<Piece> out = pieces_at_random(sizes, grid, halo.parts(), random);
  const std::vector<Piece> in = pieces_at_random(sizes, grid, halo.parts(), random);
  halo.start();
  const auto share = [&](std::size_t thread, std::uint64_t seed) {
    std::mt19937_64 own(seed);
    for (std::size_t k = thread; k < out.size(); k += threads) {
      parted.hand_over(out[k], round);
      dawdle_a_little(own);
    }
  };
  std::vector<std::thread> others;
  for (std::size_t t = 1; t < threads; ++t) others.emplace_back(share, t, random());
  share(0, random());
  for (std::thread& other : others) other.join();
  for (const Piece& piece : in) parted.take(piece, round);
  if (random() % 2 == 0) {
    while (!halo.test()) std::this_thread::yield();
  }
  halo.wait();
  check_faces(halo, grid, sizes, round);
}

}  // namespace ropewalk::test
