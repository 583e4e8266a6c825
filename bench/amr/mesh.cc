#include "amr/mesh.hpp"

#include <algorithm>
#include <cmath>

namespace ropewalk::bench {
namespace {

constexpr int children = 8;  // of a refined block
// The sphere, in lengths of the cube: it crosses about half of the blocks of a small mesh.
constexpr double radius = 0.3;
constexpr double way = 0.07;  // of its centre, from one mesh to the next

int bit(int child, int dimension) { return child >> dimension & 1; }

std::array<int, 2> others(int dimension) {
  return {dimension == 0 ? 1 : 0, dimension == 2 ? 1 : 2};
}

// Where a child lies on a face across the dimension.
std::array<int, 2> quarter_of(int child, int dimension) {
  const auto [first, second] = others(dimension);
  return {bit(child, first), bit(child, second)};
}

}  // namespace

AmrMesh::AmrMesh(int edge, int ranks, int time) : edge_(edge) {
  for (int base = 0; base < bases(); ++base) refined_.push_back(is_crossed(base, time));
  deal(ranks);
}

AmrMesh::Place AmrMesh::place(int base) const {
  return {base % edge_, base / edge_ % edge_, base / edge_ / edge_};
}

// From the nearest point of the block to the farthest one.
bool AmrMesh::is_crossed(int base, double time) const {
  const Place at = place(base);
  double nearest = 0;
  double farthest = 0;
  for (int d = 0; d < 3; ++d) {
    const double centre = 0.5 + 0.2 * std::sin(way * time * (d + 1));
    const double low = at[static_cast<std::size_t>(d)] / static_cast<double>(edge_) - centre;
    const double high = low + 1.0 / edge_;
    const double least = low > 0 ? low : std::min(high, 0.0);
    nearest += least * least;
    farthest += std::max(low * low, high * high);
  }
  return nearest <= radius * radius && radius * radius <= farthest;
}

// Consecutive blocks with about as many parts for each rank.
void AmrMesh::deal(int ranks) {
  const auto weight = [&](int base) { return is_refined(base) ? children : 1; };
  int all = 0;
  for (int base = 0; base < bases(); ++base) all += weight(base);
  int before = 0;
  for (int base = 0; base < bases(); ++base) {
    owners_.push_back(std::min(before * ranks / all, ranks - 1));
    before += weight(base);
  }
}

std::vector<MeshBlock> AmrMesh::blocks_of(int base) const {
  if (!is_refined(base)) return {{base, 0}};
  std::vector<MeshBlock> blocks;
  blocks.reserve(children);
  for (int child = 0; child < children; ++child) blocks.push_back({base, child});
  return blocks;
}

int AmrMesh::beside(int base, int dimension, bool above) const {
  Place at = place(base);
  int& moved = at[static_cast<std::size_t>(dimension)];
  moved += above ? 1 : -1;
  if (moved < 0 || moved >= edge_) return -1;
  return (at[2] * edge_ + at[1]) * edge_ + at[0];
}

void AmrMesh::link(const MeshBlock& to, int dimension, bool above,
                   std::vector<FaceLink>& links) const {
  FaceLink made{to, to, dimension, above, FaceLink::Kind::equal, {}};
  const int side = 1 << dimension;
  const bool is_fine = is_refined(to.base);
  if (is_fine && (bit(to.child, dimension) == 0) == above) {  // a part of the same block
    made.from.child = to.child ^ side;
    links.push_back(made);
    return;
  }
  made.from = {beside(to.base, dimension, above), 0};
  if (made.from.base < 0) return;
  const bool from_fine = is_refined(made.from.base);
  if (is_fine && from_fine) made.from.child = to.child ^ side;
  if (is_fine && !from_fine) {
    made.kind = FaceLink::Kind::to_fine;
    made.quarter = quarter_of(to.child, dimension);
  }
  if (is_fine || !from_fine) {
    links.push_back(made);
    return;
  }
  made.kind = FaceLink::Kind::to_coarse;
  for (int child = 0; child < children; ++child) {
    if ((bit(child, dimension) == 0) != above) continue;
    made.from.child = child;
    made.quarter = quarter_of(child, dimension);
    links.push_back(made);
  }
}

std::vector<FaceLink> AmrMesh::links() const {
  std::vector<FaceLink> links;
  for (int base = 0; base < bases(); ++base) {
    for (const MeshBlock& block : blocks_of(base)) {
      for (int side = 0; side < 6; ++side) link(block, side / 2, side % 2 != 0, links);
    }
  }
  return links;
}

}  // namespace ropewalk::bench
