// A rank's block of the cube, with one layer of ghosts: its faces, its values, and the seven-point
// stencil on it.
#pragma once

#include <array>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::bench {

class StencilBlock {
 public:
  // A cube of `edge` cells each way, in the arena of the process or in memory of libc.
  StencilBlock(const CartesianGrid& grid, int edge, bool in_arena);

  int edge() const noexcept { return edge_; }
  std::size_t face_bytes() const noexcept;
  double* cells() const noexcept { return cells_.data(); }
  std::array<int, 3> extents() const noexcept { return {edge_ + 2, edge_ + 2, edge_ + 2}; }
  Field field() const;

  // Writes the cells, and ruins the ghosts. What a cell holds follows from its place in the cube
  // and `serial`; ghosts beyond the cube are zero.
  void fill(std::uint64_t serial);
  // Each worker computes its part; all parts together are the whole.
  void update_all(int worker, int workers);
  void update_interior(int worker, int workers);  // cells that need no ghosts
  void update_boundary(int worker, int workers);  // the rest
  // Empty where the ghosts of all faces, and with `updated` all results, are right; else what is
  // wrong.
  std::string check(std::uint64_t serial, bool updated) const;

 private:
  std::size_t index(int x, int y, int z) const noexcept {
    const std::size_t width = static_cast<std::size_t>(edge_) + 2;
    return (static_cast<std::size_t>(x) * width + static_cast<std::size_t>(y)) * width +
           static_cast<std::size_t>(z);
  }
  // Where a cell of this block, or a ghost, lies in the cube along a dimension.
  int place_of(std::size_t dimension, int at) const noexcept;
  double value_at(int x, int y, int z, std::uint64_t serial) const noexcept;
  double updated_at(int x, int y, int z, std::uint64_t serial) const noexcept;
  bool inside(int x, int y, int z) const noexcept;
  void update(std::array<int, 3> begin, std::array<int, 3> end);
  // The worker's part of a slab: some of its layers along x, or of the lines of its one layer.
  void update_part(std::array<int, 3> begin, std::array<int, 3> end, int worker, int workers);
  template <class Visit>
  void for_each_face_cell(const Visit& visit) const;

  const CartesianGrid& grid_;
  int edge_;
  Buffer<double> mapped_;  // one of these two holds the cells
  std::vector<double> private_;
  std::span<double> cells_;
  Buffer<double> results_;
};

}  // namespace ropewalk::bench
