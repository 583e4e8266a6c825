// Which threads a team has, and where they go.
#include "schedule/placement.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <optional>
#include <string>
#include <vector>

namespace ropewalk::schedule {
namespace {

const std::vector<int> eight = {0, 1, 2, 3, 8, 9, 10, 11};

TEST(Placement, OneRankHasAllCores) {
  const Placement made = place(eight, 0, 1, 8, {});
  EXPECT_EQ(made.threads, 8);
  EXPECT_FALSE(made.crowded);
  EXPECT_EQ(made.cores, eight);
}

TEST(Placement, RanksShareThemOut) {
  const Placement made = place(eight, 1, 2, 8, {});
  EXPECT_EQ(made.threads, 4);
  EXPECT_EQ(made.cores, (std::vector<int>{8, 9, 10, 11}));
  EXPECT_EQ(place(eight, 1, 3, 8, {}).threads, 2);
  EXPECT_EQ(place(eight, 2, 3, 8, {}).cores, (std::vector<int>{9, 10}));
  EXPECT_EQ(place(eight, 11, 12, 8, {}).threads, 1);
}

TEST(Placement, CrowdedThreadsGoAnywhere) {
  const Placement made = place(eight, 0, 2, 8, {.threads = 5});
  EXPECT_TRUE(made.crowded);
  EXPECT_TRUE(made.cores.empty());
  EXPECT_TRUE(place(eight, 0, 9, 8, {}).crowded);
}

TEST(Placement, AQuotaCountsAsFewerCores) {
  EXPECT_EQ(place(eight, 0, 1, 3, {}).threads, 3);
  EXPECT_TRUE(place(eight, 0, 1, 3, {.threads = 4}).crowded);
}

// Of eight ranks on two nodes, four agree: all those of one node, or two on each.
TEST(Placement, RanksThatWereNotAskedAreStrangers) {
  const char* const told = "OMPI_COMM_WORLD_LOCAL_SIZE";  // is asked for first
  const char* const set = std::getenv(told);
  const std::optional<std::string> before =
      set != nullptr ? std::optional<std::string>(set) : std::nullopt;
  ::setenv(told, "4", 1);
  EXPECT_FALSE(has_strangers({.here = 4, .everywhere = 4}));
  EXPECT_FALSE(has_strangers({.here = 4, .everywhere = 8}));
  EXPECT_TRUE(has_strangers({.here = 2, .everywhere = 4}));
  before ? ::setenv(told, before->c_str(), 1) : ::unsetenv(told);
}

TEST(Placement, PinningIsOptional) { EXPECT_TRUE(place(eight, 0, 1, 8, {0, false}).cores.empty()); }

}  // namespace
}  // namespace ropewalk::schedule
