// What is known of an arena's granules.
#include "memory/granules.hpp"

#include <gtest/gtest.h>

namespace ropewalk::memory {
namespace {

constexpr std::size_t bytes = 100;  // of a granule
constexpr std::size_t count = 10;

TEST(Granules, AnExtentHasThoseThatHoldAByteOfIt) {
  const Granules granules(count * bytes, bytes);
  const auto run = granules.around({99, 2});
  EXPECT_EQ(run.first, 0U);
  EXPECT_EQ(run.end, 2U);
  const auto whole = granules.around({100, 100});
  EXPECT_EQ(whole.first, 1U);
  EXPECT_EQ(whole.end, 2U);
}

TEST(Granules, WhatIsKnownGetsBetterOrWorseOnly) {
  Granules granules(count * bytes, bytes);
  granules.set({0, 2}, Pages::huge);
  granules.hand_out({100, 200});  // the second and the third
  EXPECT_EQ(granules.at(1), Pages::huge);
  EXPECT_EQ(granules.at(2), Pages::touched);
  EXPECT_EQ(granules.at(3), Pages::none);
  granules.raise({1, 4}, Pages::small);
  EXPECT_EQ(granules.at(1), Pages::huge);
  EXPECT_EQ(granules.at(3), Pages::small);
  granules.lower({0, 5}, Pages::touched);
  EXPECT_EQ(granules.at(0), Pages::touched);
  EXPECT_EQ(granules.at(3), Pages::touched);
  EXPECT_EQ(granules.at(4), Pages::none);
}

TEST(Granules, CountsWhatIsHuge) {
  Granules granules(count * bytes, bytes);
  granules.set({2, 5}, Pages::huge);
  EXPECT_EQ(granules.huge_bytes({0, count}), 3 * bytes);
  EXPECT_EQ(granules.huge_bytes({3, 4}), bytes);
}

TEST(Granules, AnExtentIsUntouchedByItsMiddle) {
  Granules granules(count * bytes, bytes);
  granules.set({0, 1}, Pages::touched);
  EXPECT_TRUE(granules.is_untouched({50, 300}));
  granules.set({2, 3}, Pages::touched);
  EXPECT_FALSE(granules.is_untouched({50, 300}));
}

}  // namespace
}  // namespace ropewalk::memory
