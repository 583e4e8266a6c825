// realloc: contents are kept on every way between sizes, and between libc and the arena.
#include <malloc.h>

#include <cstring>
#include <random>
#include <vector>

#include "blocks.hpp"

namespace ropewalk {
namespace {

using test::is_in_arena;
using test::threshold;

TEST(Realloc, CrossesTheThresholdBothWays) {
  void* block = std::malloc(1000);
  test::fill(block, 1000, 1);
  block = std::realloc(block, os::mib);
  EXPECT_TRUE(is_in_arena(block));
  EXPECT_TRUE(test::holds(block, 1000, 1));
  test::fill(block, os::mib, 2);
  block = std::realloc(block, 5 * os::mib);
  EXPECT_TRUE(is_in_arena(block));
  EXPECT_TRUE(test::holds(block, os::mib, 2));
  test::fill(block, 2000, 3);
  block = std::realloc(block, 2000);
  EXPECT_FALSE(is_in_arena(block)) << "little is libc's again";
  EXPECT_TRUE(test::holds(block, 2000, 3));
  std::free(block);
  block = std::realloc(nullptr, os::mib);
  EXPECT_TRUE(is_in_arena(block));
  std::free(block);
}

TEST(Realloc, GrowsWhereItIs) {
  void* block = std::realloc(std::malloc(1000), os::mib);
  int moved = 0;
  std::size_t bytes = os::mib;
  test::fill(block, bytes, 1);
  for (; bytes < 64 * os::mib; bytes += 256 * os::kib) {
    void* grown = std::realloc(block, bytes + 256 * os::kib);
    moved += grown != block ? 1 : 0;
    block = grown;
  }
  EXPECT_LE(moved, 8) << "of 252: as often as it doubles";
  EXPECT_TRUE(test::holds(block, os::mib, 1));
  std::free(block);
}

TEST(Realloc, ShrinkingGivesRoomBack) {
  Arena::process().trim();
  void* block = std::malloc(64 * os::mib);
  std::memset(block, 1, 64 * os::mib);
  const std::size_t before = test::arena_resident_bytes();
  void* small = std::realloc(block, 4 * os::mib);
  EXPECT_EQ(small, block);
  EXPECT_LE(test::arena_resident_bytes() + 58 * os::mib, before);
  EXPECT_LT(malloc_usable_size(small), 5 * os::mib);
  std::free(small);
}

// A model knows what each block must hold.
TEST(Realloc, RandomSizesKeepWhatTheyHeld) {
  struct Held {
    void* block;
    std::size_t bytes;
    std::uint64_t seed;
  };
  std::mt19937_64 random(4711);
  const auto size = [&] {
    const std::size_t octave = std::size_t{1} << (8 + random() % 14);  // 256 B to 2 MiB
    return octave + random() % octave;
  };
  std::vector<Held> blocks(24, {nullptr, 0, 0});
  for (std::uint64_t step = 1; step < 500; ++step) {
    Held& one = blocks[random() % blocks.size()];
    ASSERT_TRUE(test::holds(one.block, one.bytes, one.seed)) << step;
    const std::size_t bytes = size();
    if (random() % 4 == 0) {
      std::free(one.block);
      one.block = std::malloc(bytes);
    } else {
      const std::size_t kept = std::min(bytes, one.bytes);
      std::vector<unsigned char> before(kept / 64 + 1);
      for (std::size_t i = 0; i < kept; i += 64) {
        before[i / 64] = static_cast<unsigned char*>(one.block)[i];
      }
      one.block = std::realloc(one.block, bytes);
      for (std::size_t i = 0; i < kept; i += 64) {
        ASSERT_EQ(before[i / 64], static_cast<unsigned char*>(one.block)[i]) << step;
      }
    }
    ASSERT_NE(one.block, nullptr);
    ASSERT_GE(malloc_usable_size(one.block), bytes);
    one = {one.block, bytes, step};
    test::fill(one.block, bytes, step);
  }
  for (const Held& one : blocks) {
    EXPECT_TRUE(test::holds(one.block, one.bytes, one.seed));
    std::free(one.block);
  }
}

}  // namespace
}  // namespace ropewalk
