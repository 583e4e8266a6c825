#include "halo/regions.hpp"

#include <gtest/gtest.h>

#include <vector>

namespace ropewalk::halo {
namespace {

TEST(Regions, LieWhereTheInterfaceSays) {
  std::vector<double> array((4 + 4) * (5 + 2));
  const Field field{array.data(), sizeof(double), {4, 5}, {2, 1}};
  const auto element = [&](const Region& region) {
    return (region.first - reinterpret_cast<std::byte*>(array.data())) / 8;
  };
  EXPECT_EQ(array_strides(field), (std::vector<std::size_t>{56, 8}));
  const Region up = sent_towards(field, {1, 0});
  EXPECT_EQ(element(up), 4 * 7 + 1);  // rows 4 and 5 are the last two of the interior
  EXPECT_EQ(up.extents, (std::vector<std::size_t>{2, 5}));
  EXPECT_EQ(element(ghosts_towards(field, {1, 0})), 6 * 7 + 1);
  EXPECT_EQ(element(sent_towards(field, {-1, 0})), 2 * 7 + 1);
  EXPECT_EQ(element(ghosts_towards(field, {-1, 0})), 0 * 7 + 1);
  EXPECT_EQ(element(ghosts_towards(field, {-1, 1})), 0 * 7 + 6);
  EXPECT_EQ(ghosts_towards(field, {-1, 1}).extents, (std::vector<std::size_t>{2, 1}));
  EXPECT_EQ(region_bytes(field, {1, 0}), 80U);
  EXPECT_EQ(region_bytes(field, {0, 1}), 32U);
}

TEST(Regions, FaceOfTheFirstDimensionIsContiguousWithoutGhostsInTheOthers) {
  std::vector<double> array(6 * 5);
  const Field field{array.data(), sizeof(double), {4, 5}, {1, 0}};
  EXPECT_TRUE(contiguous(field, sent_towards(field, {1, 0})));
  std::vector<double> wide(6 * 7);
  const Field both{wide.data(), sizeof(double), {4, 5}, {1, 1}};
  EXPECT_TRUE(contiguous(both, sent_towards(both, {1, 0})));  // one row
  EXPECT_FALSE(contiguous(both, sent_towards(both, {0, 1})));
}

TEST(Regions, DimensionsWithoutGhostsTakeNoPart) {
  const Field field{nullptr, 8, {4, 5}, {1, 0}};
  EXPECT_TRUE(takes_part(field, {1, 0}));
  EXPECT_FALSE(takes_part(field, {0, 1}));
  EXPECT_FALSE(takes_part(field, {1, -1}));
}

}  // namespace
}  // namespace ropewalk::halo
