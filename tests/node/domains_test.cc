// Tests grouping of ranks by their caches.
#include "node/domains.hpp"

#include <gtest/gtest.h>
#include <stdlib.h>

#include <vector>

#include "ropewalk/error.hpp"

namespace ropewalk::node {
namespace {

using Members = std::vector<std::vector<int>>;

Domains grouped(std::vector<std::int64_t> numbers) { return group_by(numbers); }

TEST(Domains, RanksOfANumberShareOne) {
  const Domains halves = grouped({8, 8, 0, 0});
  EXPECT_EQ(halves.members, (Members{{0, 1}, {2, 3}}));
  EXPECT_EQ(halves.of, (std::vector<int>{0, 0, 1, 1}));
  EXPECT_TRUE(halves.contiguous);
}

TEST(Domains, RanksInTurnAreNoRanges) {
  const Domains in_turn = grouped({0, 8, 0, 8, 0});
  EXPECT_EQ(in_turn.members, (Members{{0, 2, 4}, {1, 3}}));
  EXPECT_EQ(in_turn.of, (std::vector<int>{0, 1, 0, 1, 0}));
  EXPECT_FALSE(in_turn.contiguous);
}

TEST(Domains, AllShareOneWhereARankMayMove) {
  const Domains one = grouped({0, 8, no_domain, 8});
  EXPECT_EQ(one.count(), 1);
  EXPECT_TRUE(one.contiguous);
}

class DomainsVariable : public testing::Test {
 protected:
  ~DomainsVariable() override { unsetenv("ROPEWALK_DOMAINS"); }
};

TEST_F(DomainsVariable, OverrulesTheMachine) {
  setenv("ROPEWALK_DOMAINS", "3", 1);
  EXPECT_EQ(own_domain(2), 0);
  EXPECT_EQ(own_domain(3), 1);
  setenv("ROPEWALK_DOMAINS", "off", 1);
  EXPECT_EQ(own_domain(3), no_domain);
}

TEST_F(DomainsVariable, OtherTextIsAnError) {
  for (const char* text : {"0", "-1", "2x", "on"}) {
    setenv("ROPEWALK_DOMAINS", text, 1);
    EXPECT_THROW(own_domain(0), Error) << text;
  }
}

}  // namespace
}  // namespace ropewalk::node
