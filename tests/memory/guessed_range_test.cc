// Tests addresses that arenas reserve when nobody says how many.
#include "memory/guessed_range.hpp"

#include <gtest/gtest.h>

#include "memory/malloc_blocks.hpp"
#include "os/mapping.hpp"

namespace ropewalk::memory {
namespace {

constexpr std::uint64_t tib = std::uint64_t{1024} * os::gib;

TEST(GuessedRange, IsHalfOfTheMemory) {
  EXPECT_EQ(range_without_limit(24 * os::gib, std::nullopt), 12 * os::gib);
  EXPECT_EQ(range_without_limit(24 * os::gib, 2), 12 * os::gib);
  EXPECT_EQ(range_without_limit(tib, 128), tib / 2);
  EXPECT_EQ(range_without_limit(8 * os::mib, 2), least_range);
}

TEST(GuessedRange, OfManyRanksFitsTheAddressesOfAProcess) {
  EXPECT_EQ(range_without_limit(4 * tib, 128), tib / 2);
  EXPECT_EQ(range_without_limit(4 * tib, 1000), tib / 2) << "a team has 128 at most";
  EXPECT_EQ(range_without_limit(4 * tib, std::nullopt), tib / 2);
  EXPECT_EQ(range_without_limit(4 * tib, 4), 2 * tib);
}

TEST(GuessedRange, OfAllRanksIsAQuarterOfALimit) {
  EXPECT_EQ(range_within(8 * os::gib, tib, 1), 2 * os::gib);
  EXPECT_EQ(range_within(8 * os::gib, tib, 4), os::gib / 2);
  EXPECT_EQ(range_within(8 * os::gib, os::gib, 1), os::gib / 2);
  EXPECT_EQ(range_within(8 * os::gib, tib, 1000), least_limited_range);
  EXPECT_EQ(range_within(8 * os::gib, tib, 0), 2 * os::gib);
}

// What the program allocates never takes the last of it: a small arena is full soon.
TEST(GuessedRange, KeepsRoomForRopewalkItself) {
  MemoryOptions options;
  options.source = PageSource::shmem_small;
  options.reserve_bytes = least_limited_range;
  ArenaState arena(options);
  MallocBlocks blocks_of_malloc(arena);
  void* last = nullptr;
  std::size_t blocks = 0;
  while (void* block = blocks_of_malloc.allocate_to_grow(256 * os::kib)) {
    last = block;
    ++blocks;
  }
  EXPECT_EQ(blocks, least_limited_range * 7 / 8 / (256 * os::kib));
  EXPECT_FALSE(blocks_of_malloc.resize(last, os::mib));
  EXPECT_NO_THROW(arena.deallocate(arena.allocate(os::mib, 4096)));
}

}  // namespace
}  // namespace ropewalk::memory
