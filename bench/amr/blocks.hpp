// The cells of the blocks of a rank: values, faces, the step, and what refining does to them.
#pragma once

#include <array>
#include <cstddef>
#include <map>
#include <vector>

#include "amr/mesh.hpp"

namespace ropewalk::bench {

class AmrBlocks {
 public:
  // An even number of cells along an edge.
  explicit AmrBlocks(int cells) : cells_(cells) {}

  // The first values of the blocks that this rank owns.
  void fill(const AmrMesh& mesh, int rank);
  std::size_t face_values(FaceLink::Kind kind) const noexcept;
  std::size_t block_values() const noexcept {
    const auto edge = static_cast<std::size_t>(width());
    return edge * edge * edge;
  }

  void pack(const FaceLink& link, double* to) const;
  void unpack(const FaceLink& link, const double* from);
  void update();  // all cells, from themselves and their six neighbours
  // Divides and joins blocks of a base that this rank owns.
  void follow(const AmrMesh& before, const AmrMesh& after, int base);

  double* values(const MeshBlock& block) { return blocks_[block].data(); }
  void add(const MeshBlock& block) { blocks_[block].assign(block_values(), 0); }
  void remove(const MeshBlock& block) { blocks_.erase(block); }
  std::size_t count() const noexcept { return blocks_.size(); }
  double sum() const;  // of all cells

 private:
  int width() const noexcept { return cells_ + 2; }
  std::size_t index(const std::array<int, 3>& at) const noexcept {
    const int found = (at[2] * width() + at[1]) * width() + at[0];
    return static_cast<std::size_t>(found);
  }
  template <class Visit>
  void for_each_cell(const Visit& visit) const;
  void divide(int base);
  void join(int base);

  int cells_;
  std::map<MeshBlock, std::vector<double>> blocks_;
  std::vector<double> results_;
};

}  // namespace ropewalk::bench
