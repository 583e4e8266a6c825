// Tests the node and place of each rank of a communicator.
#include "collectives/nodes/layout.hpp"

#include <gtest/gtest.h>

namespace ropewalk::collectives::nodes {
namespace {

TEST(NodeLayout, RanksOfEachNodeInTheirOrder) {
  const NodeLayout layout = layout_of({7, 7, 2, 7, 2}, 3);
  EXPECT_EQ(layout.members, (std::vector<std::vector<int>>{{0, 1, 3}, {2, 4}}));
  EXPECT_EQ(layout.node_of, (std::vector<int>{0, 0, 1, 0, 1}));
  EXPECT_EQ(layout.place_of, (std::vector<int>{0, 1, 0, 2, 1}));
  EXPECT_EQ(layout.node, 0);
  EXPECT_EQ(layout.place(), 2);
  EXPECT_EQ(layout.least, 2);
  EXPECT_EQ(layout.most, 3);
  EXPECT_FALSE(layout.contiguous);
}

TEST(NodeLayout, BlocksOfRanksAreContiguous) {
  EXPECT_TRUE(layout_of({0, 0, 1, 2, 2}, 0).contiguous);
  EXPECT_FALSE(layout_of({0, 1, 0}, 0).contiguous);
}

}  // namespace
}  // namespace ropewalk::collectives::nodes
