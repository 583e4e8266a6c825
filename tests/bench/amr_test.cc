// Tests the mesh and the blocks of the benchmark of adaptive meshes.
#include <gtest/gtest.h>

#include <map>
#include <tuple>

#include "amr/blocks.hpp"
#include "amr/mesh.hpp"
#include "amr/options.hpp"
#include "bench/command_line.hpp"

namespace ropewalk::bench {
namespace {

std::vector<MeshBlock> all_blocks(const AmrMesh& mesh) {
  std::vector<MeshBlock> all;
  for (int base = 0; base < mesh.bases(); ++base) {
    for (const MeshBlock& block : mesh.blocks_of(base)) all.push_back(block);
  }
  return all;
}

// The quarters of a block's side that its links fill.
std::map<std::tuple<int, int, int, bool>, int> quarters_filled(const AmrMesh& mesh) {
  std::map<std::tuple<int, int, int, bool>, int> filled;
  for (const FaceLink& link : mesh.links()) {
    filled[{link.to.base, link.to.child, link.dimension, link.above}] +=
        link.kind == FaceLink::Kind::to_coarse ? 1 : 4;
  }
  return filled;
}

TEST(Amr, EverySideIsFilledOnceOrLiesOnTheBoundary) {
  for (const int time : {0, 3, 11}) {
    const AmrMesh mesh(4, 3, time);
    const auto filled = quarters_filled(mesh);
    for (const auto& [side, quarters] : filled) EXPECT_EQ(quarters, 4) << std::get<0>(side);
    // Each face of the cube has sides of 16 coarse blocks, of which a refined one shows four.
    std::size_t outside = 0;
    for (int base = 0; base < mesh.bases(); ++base) {
      for (const int at : {base % 4, base / 4 % 4, base / 16}) {
        if (at == 0 || at == 3) outside += mesh.is_refined(base) ? 4 : 1;
      }
    }
    EXPECT_EQ(filled.size() + outside, 6 * all_blocks(mesh).size());
  }
}

TEST(Amr, TheMeshChangesAndIsDealtToAllRanks) {
  const AmrMesh before(4, 5, 0);
  const AmrMesh after(4, 5, 4);
  int changed = 0;
  std::vector<int> parts(5);
  for (int base = 0; base < before.bases(); ++base) {
    changed += before.is_refined(base) != after.is_refined(base) ? 1 : 0;
    parts[static_cast<std::size_t>(after.owner(base))] += after.is_refined(base) ? 8 : 1;
  }
  EXPECT_GT(changed, 0);
  for (const int part : parts) EXPECT_NEAR(part, all_blocks(after).size() / 5.0, 16);
}

// Fills all cells by their place in the cube, in units of fine cells.
template <class Field>
void set_all(AmrBlocks& blocks, const AmrMesh& mesh, int cells, const Field& field) {
  const int width = cells + 2;
  for (const MeshBlock& block : all_blocks(mesh)) {
    blocks.add(block);
    const bool is_fine = mesh.is_refined(block.base);
    for (int i = 0; i < width * width * width; ++i) {
      const bool is_inside = i % width >= 1 && i % width <= cells && i / width % width >= 1 &&
                             i / width % width <= cells && i / width / width >= 1 &&
                             i / width / width <= cells;
      const double x =
          is_fine ? cells * (block.child & 1) + i % width - 0.5 : 2 * (i % width) - 1.0;
      blocks.values(block)[i] = is_inside ? field(2 * cells * (block.base % 4) + x) : 0;
    }
  }
}

TEST(Amr, GhostsContinueAFieldAcrossBlocksOfAllSizes) {
  constexpr int cells = 4;
  constexpr int width = cells + 2;
  const AmrMesh mesh(4, 1, 0);
  AmrBlocks blocks(cells);
  set_all(blocks, mesh, cells, [](double x) { return x; });
  std::vector<double> face(cells * cells);
  for (const FaceLink& link : mesh.links()) {
    blocks.pack(link, face.data());
    blocks.unpack(link, face.data());
  }
  for (const FaceLink& link : mesh.links()) {
    if (link.dimension != 0 || link.kind == FaceLink::Kind::to_fine) continue;
    const double* line = blocks.values(link.to) + (width + 1) * width;
    const double step = mesh.is_refined(link.to.base) ? 1 : 2;
    const double ghost = link.above ? line[cells + 1] - line[cells] : line[1] - line[0];
    // The mean of four fine cells lies a quarter of a coarse cell nearer.
    const double nearer = link.kind == FaceLink::Kind::to_coarse ? 0.5 : 0;
    EXPECT_DOUBLE_EQ(ghost, step - nearer);
  }
}

TEST(Amr, JoiningUndoesDividing) {
  const AmrMesh coarse(4, 1, 0);
  const AmrMesh later(4, 1, 4);
  AmrBlocks blocks(4);
  blocks.fill(coarse, 0);
  const double sum = blocks.sum();
  ASSERT_NE(sum, 0);
  int divided = 0;
  for (int base = 0; base < coarse.bases(); ++base) {
    if (coarse.is_refined(base) || !later.is_refined(base)) continue;
    blocks.follow(coarse, later, base);
    blocks.follow(later, coarse, base);
    ++divided;
  }
  EXPECT_GT(divided, 0);
  EXPECT_DOUBLE_EQ(blocks.sum(), sum);
}

TEST(Amr, CellsThatCannotBeAreRefused) {
  const auto refusal = [](const char* cells) {
    return refusal_of([&] { parse_words<AmrOptions>("ropewalk-bench-amr", {"--cells", cells}); });
  };
  EXPECT_EQ(parse_words<AmrOptions>("ropewalk-bench-amr", {}).cell_list,
            (std::vector<int>{4, 8, 16}));
  for (const char* wrong : {"3", "0", "34", "x"}) {
    EXPECT_NE(refusal(wrong).find("--cells"), std::string::npos) << wrong;
  }
}

}  // namespace
}  // namespace ropewalk::bench
