// The bookkeeping alone: no memory is touched.
#include "memory/free_space.hpp"

#include <gtest/gtest.h>

#include <random>
#include <vector>

#include "memory/block_cache.hpp"

namespace ropewalk::memory {
namespace {

TEST(FreeSpace, JoinsNeighboursOnBothSides) {
  FreeSpace space;
  space.give({0, 100});
  space.give({200, 100});
  EXPECT_EQ(space.extents().size(), 2u);
  const Extent joined = space.give({100, 100});
  EXPECT_EQ(joined.offset, 0u);
  EXPECT_EQ(joined.bytes, 300u);
  EXPECT_EQ(space.extents().size(), 1u);
  EXPECT_EQ(space.bytes(), 300u);
  EXPECT_EQ(space.tail(300), 300u);
  EXPECT_EQ(space.tail(400), 0u);
}

TEST(FreeSpace, TakesTheSmallestThatFits) {
  FreeSpace space;
  space.give({0, 1000});
  space.give({2000, 100});
  EXPECT_EQ(space.take(100, 1, 0), 2000u);
  EXPECT_EQ(space.take(100, 1, 0), 0u);
  EXPECT_FALSE(space.take(901, 1, 0));
  EXPECT_EQ(space.take(900, 1, 0), 100u);
  EXPECT_EQ(space.bytes(), 0u);
}

TEST(FreeSpace, AlignsAddressesAndKeepsBothRests) {
  FreeSpace space;
  space.give({10, 1000});
  EXPECT_EQ(space.take(100, 256, 6), 250u) << "250 + 6 is a multiple of 256";
  EXPECT_EQ(space.bytes(), 900u);
  EXPECT_EQ(space.extents().at(10), 240u);
  EXPECT_EQ(space.extents().at(350), 660u);
}

// A plain array of bytes serves as the model.
TEST(FreeSpace, AgreesWithAMapOfBytes) {
  constexpr std::size_t size = 4096;
  std::vector<bool> is_free(size, true);
  std::vector<Extent> taken;
  FreeSpace space;
  space.give({0, size});
  std::mt19937 random(7);
  for (int step = 0; step < 3000; ++step) {
    if (random() % 2 == 0) {
      const std::size_t bytes = 1 + random() % 200;
      const std::size_t alignment = std::size_t{1} << (random() % 6);
      const auto at = space.take(bytes, alignment, 0);
      if (!at) continue;
      ASSERT_EQ(*at % alignment, 0u);
      for (std::size_t i = *at; i < *at + bytes; ++i) {
        ASSERT_TRUE(is_free[i]);
        is_free[i] = false;
      }
      taken.push_back({*at, bytes});
    } else if (!taken.empty()) {
      std::swap(taken[random() % taken.size()], taken.back());
      const Extent back = taken.back();
      taken.pop_back();
      space.give(back);
      for (std::size_t i = back.offset; i < back.offset + back.bytes; ++i) is_free[i] = true;
    }
    const auto expected =
        static_cast<std::size_t>(std::count(is_free.begin(), is_free.end(), true));
    ASSERT_EQ(space.bytes(), expected);
  }
  for (const Extent back : taken) space.give(back);
  EXPECT_EQ(space.extents().size(), 1u);
}

TEST(BlockCache, GivesBackWhatFitsClosely) {
  BlockCache cache(1 << 20);
  EXPECT_TRUE(cache.give({0, 1000}).empty());
  EXPECT_FALSE(cache.take(800, 1, 0)) << "more than an eighth too large";
  EXPECT_FALSE(cache.take(1001, 1, 0));
  const auto block = cache.take(900, 1, 0);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->bytes, 1000u);
  EXPECT_EQ(cache.bytes(), 0u);
  EXPECT_FALSE(cache.take(900, 1, 0));
}

TEST(BlockCache, MindsAlignment) {
  BlockCache cache(1 << 20);
  cache.give({128, 1000});
  cache.give({4096, 1000});
  const auto block = cache.take(1000, 4096, 0);
  ASSERT_TRUE(block);
  EXPECT_EQ(block->offset, 4096u);
  EXPECT_FALSE(cache.take(1000, 4096, 0));
  EXPECT_TRUE(cache.take(1000, 128, 0));
}

TEST(BlockCache, TheOldestLeaveFirst) {
  BlockCache cache(2500);
  cache.give({0, 1000});
  cache.give({1000, 1000});
  const auto leaving = cache.give({2000, 1000});
  ASSERT_EQ(leaving.size(), 1u);
  EXPECT_EQ(leaving.front().offset, 0u);
  EXPECT_EQ(cache.bytes(), 2000u);
  const auto itself = cache.give({9000, 3000});
  ASSERT_EQ(itself.size(), 1u) << "a block above the limit leaves itself, and the others stay";
  EXPECT_EQ(itself.front().offset, 9000u);
  EXPECT_EQ(cache.bytes(), 2000u);
}

}  // namespace
}  // namespace ropewalk::memory
