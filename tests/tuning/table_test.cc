// Tests the table of thresholds: complete rows, and defaults within the bounds that a profile has.
#include "tuning/table.hpp"

#include <gtest/gtest.h>

#include <set>
#include <string>

namespace ropewalk::tuning {
namespace {

TEST(Table, NamesEachRowOnceAndSaysWhatItIs) {
  std::set<std::string_view> names;
  for (const Row& one : table()) {
    EXPECT_TRUE(names.insert(one.name).second) << one.name;
    EXPECT_EQ(find(one.name), &one);
    EXPECT_EQ(&row(one.id), &one);
    EXPECT_NE(one.name.find('.'), std::string_view::npos) << one.name;
    for (const std::string_view text : {one.text, one.serves, one.meaning, one.origin}) {
      EXPECT_FALSE(text.empty()) << one.name;
    }
    EXPECT_LT(one.least, one.most) << one.name;
  }
  EXPECT_EQ(find("node.nothing"), nullptr);
}

TEST(Table, DefaultsLieWithinTheBounds) {
  for (const int ranks : {1, 2, 3, 8, 64, 128}) {
    for (const bool crowded : {false, true}) {
      const Facts facts{ranks, crowded, std::size_t{32} << 20};
      for (const Row& one : table()) {
        EXPECT_GE(default_value(one, facts), one.least) << one.name << ", " << ranks << " ranks";
        EXPECT_LE(default_value(one, facts), one.most) << one.name << ", " << ranks << " ranks";
      }
    }
  }
}

}  // namespace
}  // namespace ropewalk::tuning
