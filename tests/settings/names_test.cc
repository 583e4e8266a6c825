#include "settings/names.hpp"

#include <gtest/gtest.h>

#include <string>

#include "ropewalk/error.hpp"
#include "ropewalk/settings.hpp"

namespace ropewalk::settings {
namespace {

std::string_view meant(std::string_view name) {
  const Option* found = nearest(name);
  return found == nullptr ? "" : found->name;
}

TEST(Names, ThoseOfTheTableAndOfTestsAreKnown) {
  for (const Option& option : table()) EXPECT_FALSE(is_unknown(option.name)) << option.name;
  for (const char* other : {"ROPEWALK_TEST_HANG", "PATH", "OMPI_MCA_btl", "ropewalk_lanes", ""}) {
    EXPECT_FALSE(is_unknown(other)) << other;
  }
  for (const char* other : {"ROPEWALK_LANE", "ROPEWALK_", "ROPEWALK_MALLOC"}) {
    EXPECT_TRUE(is_unknown(other)) << other;
  }
}

TEST(Names, TheNearestIsFoundForWhatIsMisspelt) {
  EXPECT_EQ(meant("ROPEWALK_LANE"), "ROPEWALK_LANES");
  EXPECT_EQ(meant("ROPEWALK_TIME_OUT"), "ROPEWALK_TIMEOUT");
  EXPECT_EQ(meant("ROPEWALK_ALREDUCE"), "ROPEWALK_ALLREDUCE");
  EXPECT_EQ(meant("ROPEWALK_ARENA_SIZE"), "ROPEWALK_ARENA_BYTES");
  EXPECT_EQ(meant("ROPEWALK_STAT"), "ROPEWALK_STATS");
  EXPECT_EQ(meant("ROPEWALK_XYZZY"), "");
  EXPECT_EQ(meant("ROPEWALK_"), "");
  EXPECT_EQ(meant("ROPEWALK_" + std::string(5000, 'L')), "");
}

TEST(Names, TheWarningNamesBoth) {
  EXPECT_EQ(unknown_setting("ROPEWALK_LANE"),
            "ROPEWALK_LANE: unknown, expected a name that `ropewalk config` lists; did you mean "
            "ROPEWALK_LANES?");
  EXPECT_EQ(unknown_setting("ROPEWALK_XYZZY"),
            "ROPEWALK_XYZZY: unknown, expected a name that `ropewalk config` lists; unset it");
  EXPECT_EQ(unknown_setting("ROPEWALK_LANES"), "");
}

TEST(PublicInterface, ShowsTheTableAndRefusesOtherNames) {
  ASSERT_EQ(all_settings().size(), table().size());
  const Setting lanes = all_settings().front();
  EXPECT_EQ(lanes.name, "ROPEWALK_LANES");
  EXPECT_EQ(lanes.type, "count");
  EXPECT_EQ(lanes.expected, "auto, or 1 to 64");
  EXPECT_EQ(lanes.scope, "all ranks");
  EXPECT_EQ(setting("ROPEWALK_LANES", "7").value, "7");
  EXPECT_EQ(setting("ROPEWALK_LANES", "7").error, "");
  EXPECT_EQ(setting("ROPEWALK_LANES", "x").error.find("ROPEWALK_LANES: found \"x\""), 0U);
  EXPECT_THROW(setting("ROPEWALK_LANE"), Error);
}

}  // namespace
}  // namespace ropewalk::settings
