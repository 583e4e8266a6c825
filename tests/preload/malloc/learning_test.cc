// Which blocks the arena keeps: places in the program that communicate what they allocate, and
// those that nobody knows yet.
#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "blocks.hpp"

namespace ropewalk {
namespace {

using test::Block;
using test::is_in_arena;
using Blocks = std::vector<Block>;

constexpr int enough = 100;  // more than the evidence that is asked for

ArenaStatistics statistics() { return Arena::process().statistics(); }

void communicate(const void* block, std::size_t from, std::size_t bytes) {
  Arena::process().note_communicated(static_cast<const std::byte*>(block) + from, bytes);
}

// Each instance of a template is a place of its own, so each test has places that no other knows.
// The compiler must not find that their code is the same.
#define A_PLACE(number) __asm__ volatile("# place %c0" : : "i"(number))
template <int place>
__attribute__((noinline)) Block take(std::size_t bytes) {
  A_PLACE(place);
  return Block(std::malloc(bytes));
}
template <int place>
__attribute__((noinline)) Block take_zeroed(std::size_t bytes) {
  A_PLACE(place);
  return Block(std::calloc(bytes / 16, 16));
}

// All live at once, so that each is fresh.
template <int place>
__attribute__((noinline)) Blocks batch(std::size_t bytes, int count = enough) {
  Blocks blocks;
  for (int i = 0; i < count; ++i) {
    blocks.push_back(take<place>(bytes));
    std::memset(blocks.back().get(), 1, 4096);
  }
  return blocks;
}

int in_arena(const Blocks& blocks) {
  int count = 0;
  for (const Block& block : blocks) {
    count += Arena::process().contains(block.get(), 1) ? 1 : 0;
  }
  return count;
}

constexpr std::size_t one = os::mib;

TEST(Learning, WhatIsNotCommunicatedIsLibcs) {
  const ArenaStatistics before = statistics();
  EXPECT_EQ(in_arena(batch<1>(one)), enough) << "nothing is known of the first";
  EXPECT_EQ(in_arena(batch<1>(one)), 0);
  const ArenaStatistics after = statistics();
  EXPECT_EQ(after.learned, before.learned + 1);
  EXPECT_EQ(after.unlearned, before.unlearned);
  EXPECT_EQ(after.libc_blocks, before.libc_blocks + enough);
  EXPECT_EQ(after.libc_bytes, before.libc_bytes + enough * one);
  EXPECT_EQ(after.malloc_bytes, before.malloc_bytes + 2 * enough * one);
  EXPECT_EQ(after.communicated_bytes, before.communicated_bytes);
  EXPECT_EQ(in_arena(batch<1>(16 * one, 4)), 4) << "another size";
  EXPECT_EQ(in_arena(batch<2>(one, 4)), 4) << "another place";
}

TEST(Learning, WhatIsKeptIsNotJudged) {
  const Blocks kept = batch<3>(one);
  EXPECT_EQ(in_arena(batch<3>(one, 5)), 5);
  EXPECT_EQ(in_arena(kept), enough);
}

TEST(Learning, WhatIsCommunicatedKeepsItsPlace) {
  const ArenaStatistics before = statistics();
  {
    const Blocks blocks = batch<4>(one);
    communicate(blocks[57].get(), 300000, 100000);
  }
  EXPECT_EQ(statistics().communicated_bytes, before.communicated_bytes + 2 * (64 << 10));
  for (int round = 0; round < 3; ++round) EXPECT_EQ(in_arena(batch<4>(one)), enough) << round;
  EXPECT_EQ(statistics().learned, before.learned);
}

TEST(Learning, ByPiecesThatAreWorthIt) {
  communicate(batch<5>(one, 1)[0].get(), one - 5000, 5000);
  batch<5>(one);
  EXPECT_EQ(in_arena(batch<5>(one)), enough);
  communicate(batch<6>(one, 1)[0].get(), 4096, 100);
  batch<6>(one);
  EXPECT_EQ(in_arena(batch<6>(one)), 0) << "a word is not";
}

TEST(Learning, CommunicatedTwiceIsCountedOnce) {
  const std::uint64_t before = statistics().communicated_bytes;
  const Block block = take<7>(4 * one);
  communicate(block.get(), 0, 4 * one);
  EXPECT_EQ(statistics().communicated_bytes, before + 4 * one);
  communicate(block.get(), 0, 4 * one);
  communicate(block.get(), one, one);
  EXPECT_EQ(statistics().communicated_bytes, before + 4 * one);
}

TEST(Learning, LibcsBlocksAreSeenAndTheirPlaceTakenBack) {
  batch<8>(one);
  const ArenaStatistics before = statistics();
  const Blocks blocks = batch<8>(one, 1);
  ASSERT_EQ(in_arena(blocks), 0);
  for (int i = 0; i < 3; ++i) communicate(blocks[0].get(), 500000, 64 << 10);
  const ArenaStatistics after = statistics();
  EXPECT_EQ(after.unlearned, before.unlearned + 1);
  EXPECT_EQ(after.communicated_bytes, before.communicated_bytes + one);
  for (int round = 0; round < 3; ++round) EXPECT_EQ(in_arena(batch<8>(one)), enough) << "for good";
}

// Static arrays and stacks, asked about again and again, teach nothing.
TEST(Learning, OtherMemoryTeachesNothing) {
  batch<9>(one);
  static char array[256 << 10];
  char local[32 << 10];
  const ArenaStatistics before = statistics();
  for (int i = 0; i < 1000; ++i) {
    communicate(array, 0, sizeof array);
    communicate(local, 0, sizeof local);
    communicate(nullptr, 0, one);
  }
  EXPECT_EQ(statistics().unlearned, before.unlearned);
  EXPECT_EQ(in_arena(batch<9>(one, 1)), 0);
}

// What libc has made of a block's addresses after it was freed is no reason.
TEST(Learning, FreedBlocksTeachNothing) {
  batch<13>(one);
  std::vector<void*> addresses;
  for (const Block& block : batch<13>(one)) addresses.push_back(block.get());
  const std::uint64_t before = statistics().unlearned;
  for (const void* address : addresses) communicate(address, 0, 100000);
  EXPECT_EQ(statistics().unlearned, before);
  EXPECT_EQ(in_arena(batch<13>(one, 1)), 0);
}

// What the arena has kept with its pages costs less than libc's: no reason to leave.
TEST(Learning, AHotLoopStays) {
  for (int i = 0; i < enough; ++i) std::memset(take<10>(one).get(), 1, one);
  EXPECT_TRUE(is_in_arena(take<10>(one).get()));
}

TEST(Learning, EveryFunctionOfTheFamily) {
  const auto aligned = [](std::size_t alignment) {
    Blocks blocks;
    for (int i = 0; i < enough; ++i) blocks.emplace_back(aligned_alloc(alignment, one));
    return blocks;
  };
  aligned(4096);
  const Blocks blocks = aligned(4096);
  EXPECT_EQ(in_arena(blocks), 0);
  for (const Block& block : blocks) {
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block.get()) % 4096, 0u);
    test::fill(block.get(), 4096, 1);
  }
}

TEST(Learning, AVectorThatGrows) {
  const auto grow = [] {
    std::vector<Block> blocks;
    for (int i = 0; i < 20; ++i) {
      Block block(std::malloc(1000));
      test::fill(block.get(), 1000, 3);
      for (std::size_t bytes = one; bytes <= 4 * one; bytes += one) {
        block.reset(std::realloc(block.release(), bytes));
        EXPECT_TRUE(test::holds(block.get(), 1000, 3));
      }
      blocks.push_back(std::move(block));
    }
    return blocks;
  };
  EXPECT_EQ(in_arena(grow()), 20);
  const Blocks grown = grow();
  EXPECT_EQ(in_arena(grown), 0);
  const std::uint64_t before = statistics().unlearned;
  communicate(grown.back().get(), 3 * one, one);
  EXPECT_EQ(statistics().unlearned, before + 1) << "libc has moved it, and it is known";
  EXPECT_EQ(in_arena(grow()), 20);
}

TEST(Learning, GrowingInTheArenaIsFollowed) {
  Block block = take<11>(one);
  block.reset(std::realloc(block.release(), 8 * one));
  ASSERT_TRUE(is_in_arena(block.get()));
  communicate(block.get(), 7 * one, one);
  const std::uint64_t before = statistics().communicated_bytes;
  block.reset(std::realloc(block.release(), 2 * one));
  communicate(block.get(), 0, 2 * one);
  EXPECT_EQ(statistics().communicated_bytes, before + 2 * one);
}

// ---- calloc: reading makes pages in the arena, and costs nothing in libc ------------------------

constexpr std::size_t table_bytes = 512 * os::mib;

bool reads_zero(const Block& block, std::size_t bytes) {
  const auto* at = static_cast<const volatile char*>(block.get());
  for (std::size_t i = 0; i < bytes; i += 4096) {
    if (at[i] != 0) return false;
  }
  return true;
}

TEST(Zeroed, ReadingALargeTableCostsNoMemory) {
  const std::size_t before = test::arena_resident_bytes();
  const Block table = take_zeroed<20>(table_bytes);
  EXPECT_TRUE(reads_zero(table, table_bytes));
  EXPECT_LE(test::arena_resident_bytes(), before + os::mib);
}

TEST(Zeroed, OnlySoMuchThatNobodyCommunicates) {
  constexpr std::size_t bytes = 15 * os::mib;  // four of them are let in
  const std::size_t limit = Arena::process().reserved_bytes() / 16;
  for (int round = 0; round < 2; ++round) {
    const std::size_t before = test::arena_resident_bytes();
    Blocks blocks;
    for (int i = 0; i < 12; ++i) {
      blocks.push_back(take_zeroed<21>(bytes));
      EXPECT_TRUE(reads_zero(blocks.back(), bytes));
    }
    EXPECT_EQ(in_arena(blocks), 4) << "round " << round << ": freed ones do not count";
    EXPECT_LE(test::arena_resident_bytes(), before + limit);
  }
}

TEST(Zeroed, WhatIsCommunicatedIsLetIn) {
  constexpr std::size_t bytes = 15 * os::mib;
  const Block first = take_zeroed<22>(bytes);
  ASSERT_TRUE(is_in_arena(first.get()));
  communicate(first.get(), 0, bytes);
  Blocks blocks;
  for (int i = 0; i < 12; ++i) blocks.push_back(take_zeroed<22>(bytes));
  EXPECT_EQ(in_arena(blocks), 12);
  EXPECT_TRUE(test::is_zero(blocks.back().get(), bytes));
}

TEST(Zeroed, LearnedFromLibc) {
  const Block table = take_zeroed<23>(table_bytes);
  ASSERT_FALSE(is_in_arena(table.get()));
  communicate(table.get(), table_bytes / 2, os::mib);
  EXPECT_TRUE(is_in_arena(take_zeroed<23>(table_bytes).get()));
}

// Threads allocate, communicate and free at the same places: nothing is lost or mixed up.
TEST(Learning, ByManyThreads) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t t = 0; t < 4; ++t) {
    threads.emplace_back([&wrong, t] {
      for (std::uint64_t round = 0; round < 60; ++round) {
        const Blocks blocks = batch<12>(200000 + 50000 * (round % 7), 10);
        for (const Block& block : blocks) test::fill(block.get(), 200000, t);
        if (round % 9 == 8) communicate(blocks[3].get(), 0, 200000);
        for (const Block& block : blocks) wrong += test::holds(block.get(), 200000, t) ? 0 : 1;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace ropewalk
