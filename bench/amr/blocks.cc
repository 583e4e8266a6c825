#include "amr/blocks.hpp"

namespace ropewalk::bench {
namespace {

using Cell = std::array<int, 3>;

// A cell of the layer across a dimension.
Cell on_face(int dimension, int layer, int first, int second) {
  if (dimension == 0) return {layer, first, second};
  if (dimension == 1) return {first, layer, second};
  return {first, second, layer};
}

// The place of a cell of a fine block in the coarse one.
int coarse(int cell, int half, int cells) { return half * cells / 2 + (cell - 1) / 2 + 1; }

}  // namespace

template <class Visit>
void AmrBlocks::for_each_cell(const Visit& visit) const {
  for (int z = 1; z <= cells_; ++z) {
    for (int y = 1; y <= cells_; ++y) {
      for (int x = 1; x <= cells_; ++x) visit(Cell{x, y, z});
    }
  }
}

void AmrBlocks::fill(const AmrMesh& mesh, int rank) {
  blocks_.clear();
  for (int base = 0; base < mesh.bases(); ++base) {
    if (mesh.owner(base) != rank) continue;
    for (const MeshBlock& block : mesh.blocks_of(base)) {
      add(block);
      double* cells = values(block);
      for_each_cell([&](const Cell& at) {
        cells[index(at)] = 1 + (base * 31 + block.child * 7 + at[0] + 3 * at[1] + 5 * at[2]) % 17;
      });
    }
  }
}

std::size_t AmrBlocks::face_values(FaceLink::Kind kind) const noexcept {
  const auto edge = static_cast<std::size_t>(kind == FaceLink::Kind::equal ? cells_ : cells_ / 2);
  return edge * edge;
}

void AmrBlocks::pack(const FaceLink& link, double* to) const {
  const double* cells = blocks_.at(link.from).data();
  const int layer = link.above ? 1 : cells_;
  const auto value = [&](int a, int b) {
    return cells[index(on_face(link.dimension, layer, a, b))];
  };
  const int edge = link.kind == FaceLink::Kind::equal ? cells_ : cells_ / 2;
  const bool is_part = link.kind == FaceLink::Kind::to_fine;
  const int first = is_part ? link.quarter[0] * edge : 0;
  const int second = is_part ? link.quarter[1] * edge : 0;
  for (int b = 0; b < edge; ++b) {
    for (int a = 0; a < edge; ++a) {
      const int i = 2 * a + 1;
      const int j = 2 * b + 1;
      *to++ = link.kind == FaceLink::Kind::to_coarse
                  ? 0.25 * (value(i, j) + value(i + 1, j) + value(i, j + 1) + value(i + 1, j + 1))
                  : value(first + a + 1, second + b + 1);
    }
  }
}

void AmrBlocks::unpack(const FaceLink& link, const double* from) {
  double* cells = values(link.to);
  const int layer = link.above ? cells_ + 1 : 0;
  const int edge = link.kind == FaceLink::Kind::to_coarse ? cells_ / 2 : cells_;
  const int scale = link.kind == FaceLink::Kind::to_fine ? 2 : 1;
  const bool is_part = link.kind == FaceLink::Kind::to_coarse;
  const int first = is_part ? link.quarter[0] * edge : 0;
  const int second = is_part ? link.quarter[1] * edge : 0;
  for (int b = 0; b < edge; ++b) {
    for (int a = 0; a < edge; ++a) {
      cells[index(on_face(link.dimension, layer, first + a + 1, second + b + 1))] =
          from[b / scale * (edge / scale) + a / scale];
    }
  }
}

void AmrBlocks::update() {
  results_.resize(block_values());
  const int line = width();
  const int plane = width() * width();
  for (auto& [block, cells] : blocks_) {
    for_each_cell([&, &old = cells](const Cell& at) {
      const double* here = old.data() + index(at);
      results_[index(at)] =
          0.5 * here[0] +
          (here[-1] + here[1] + here[-line] + here[line] + here[-plane] + here[plane]) / 12;
    });
    for_each_cell([&, &all = cells](const Cell& at) { all[index(at)] = results_[index(at)]; });
  }
}

void AmrBlocks::divide(int base) {
  const std::vector<double> parent = blocks_.at({base, 0});
  for (int child = 0; child < 8; ++child) {
    add({base, child});
    double* cells = values({base, child});
    for_each_cell([&](const Cell& at) {
      cells[index(at)] =
          parent[index({coarse(at[0], child & 1, cells_), coarse(at[1], child >> 1 & 1, cells_),
                        coarse(at[2], child >> 2, cells_)})];
    });
  }
}

void AmrBlocks::join(int base) {
  std::vector<double> parent(block_values());
  for (int child = 0; child < 8; ++child) {
    const double* cells = values({base, child});
    for_each_cell([&](const Cell& at) {
      parent[index({coarse(at[0], child & 1, cells_), coarse(at[1], child >> 1 & 1, cells_),
                    coarse(at[2], child >> 2, cells_)})] += 0.125 * cells[index(at)];
    });
    remove({base, child});
  }
  blocks_[{base, 0}] = std::move(parent);
}

void AmrBlocks::follow(const AmrMesh& before, const AmrMesh& after, int base) {
  if (before.is_refined(base) && !after.is_refined(base)) join(base);
  if (!before.is_refined(base) && after.is_refined(base)) divide(base);
}

double AmrBlocks::sum() const {
  double sum = 0;
  for (const auto& [block, cells] : blocks_) {
    for_each_cell([&, &all = cells](const Cell& at) { sum += all[index(at)]; });
  }
  return sum;
}

}  // namespace ropewalk::bench
