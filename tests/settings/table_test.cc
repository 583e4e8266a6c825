// What every row of the table must have.
#include "settings/table.hpp"

#include <gtest/gtest.h>

#include <cctype>
#include <set>
#include <string_view>

#include "channel/registration_cache.hpp"
#include "ropewalk/endpoint.hpp"
#include "settings/value.hpp"

namespace ropewalk::settings {
namespace {

TEST(Table, EveryRowIsWhole) {
  std::set<std::string_view> names;
  for (const Option& row : table()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    EXPECT_EQ(row.name.find("ROPEWALK_"), 0U) << row.name;
    EXPECT_EQ(row.name.data()[row.name.size()], '\0') << row.name;  // what getenv() reads
    EXPECT_FALSE(row.meaning.empty()) << row.name;
    EXPECT_NE(row.page.find(".md"), std::string_view::npos) << row.name;
    EXPECT_EQ(row.kind == Kind::choice, row.kind == Kind::choice && !row.words.empty()) << row.name;
    EXPECT_LE(row.least, row.most) << row.name;
    if (!row.fallback.empty()) {
      EXPECT_FALSE(parse(row, row.fallback.data()).malformed) << row.name;
    }
  }
}

TEST(Table, HasTheConstantsOfTheCode) {
  EXPECT_EQ(option(Id::lanes).most, EndpointSet::max_lanes);
  EXPECT_EQ(parse(Id::registrations, nullptr).number,
            static_cast<std::int64_t>(channel::RegistrationCache::default_capacity));
}

}  // namespace
}  // namespace ropewalk::settings
