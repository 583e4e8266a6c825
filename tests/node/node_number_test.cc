// Tests the node that a rank is assigned to.
#include "node/node_number.hpp"

#include <gtest/gtest.h>

#include <vector>

#include "ropewalk/error.hpp"

namespace ropewalk::node {
namespace {

std::vector<int> pretended(const char* text, int ranks) {
  std::vector<int> nodes;
  for (int rank = 0; rank < ranks; ++rank) nodes.push_back(pretended_node(text, rank).value_or(-1));
  return nodes;
}

TEST(NodeNumber, AListSaysHowManyRanksANodeHas) {
  EXPECT_EQ(pretended("2,1,3", 9), (std::vector<int>{0, 0, 1, 2, 2, 2, 3, 3, 4}));
  EXPECT_EQ(pretended("2", 5), (std::vector<int>{0, 0, 1, 1, 2}));
}

TEST(NodeNumber, RoundDealsThem) {
  EXPECT_EQ(pretended("round:3", 7), (std::vector<int>{0, 1, 2, 0, 1, 2, 0}));
}

TEST(NodeNumber, AutoAndNothingPretendNone) {
  EXPECT_EQ(pretended_node(nullptr, 3), std::nullopt);
  EXPECT_EQ(pretended_node("", 3), std::nullopt);
  EXPECT_EQ(pretended_node("auto", 3), std::nullopt);
}

TEST(NodeNumber, OtherTextIsAnError) {
  for (const char* text : {"0", "2,", ",2", "2,0", "round:", "round:0", "round:2x", "two"}) {
    EXPECT_THROW(pretended_node(text, 0), Error) << text;
  }
}

TEST(NodeNumber, NodesAreNumberedByTheirLowestRank) {
  const std::vector<std::string> names{"b", "a", "b", "c", "a"};
  EXPECT_EQ(number_nodes(names), (std::vector<int>{0, 1, 0, 2, 1}));
}

}  // namespace
}  // namespace ropewalk::node
