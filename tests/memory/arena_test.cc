// Tests Arena as its users see it.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <thread>
#include <vector>

#include "kernel_collapse.hpp"
#include "os/mapping.hpp"
#include "os/memfd.hpp"
#include "pattern.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk {
namespace {

MemoryOptions small(std::size_t reserve = 64 * os::mib) {
  MemoryOptions options;
  options.pages = PagePolicy::never;
  options.reserve_bytes = reserve;
  return options;
}

std::size_t address(const void* pointer) { return reinterpret_cast<std::uintptr_t>(pointer); }

TEST(Arena, AlignsAsAskedAndRefusesTheRest) {
  Arena arena(small());
  for (const std::size_t alignment : {1UL, 2UL, 64UL, 128UL, 4096UL, 1UL << 21, 1UL << 23}) {
    void* block = arena.allocate(100, alignment);
    EXPECT_EQ(address(block) % alignment, 0u);
    EXPECT_EQ(address(block) % 128, 0u) << "no two blocks share a pair of cache lines";
    test::fill(block, 100, alignment);
  }
  for (const std::size_t alignment : {0UL, 3UL, 96UL, SIZE_MAX}) {
    try {
      arena.allocate(100, alignment);
      ADD_FAILURE() << alignment;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::argument);
      EXPECT_EQ(std::string(error.what()).find("alignment: "), 0u);
    }
  }
}

TEST(Arena, NoBytesGetAPointerOfTheirOwn) {
  Arena arena(small());
  void* first = arena.allocate(0);
  void* second = arena.allocate(0);
  EXPECT_NE(first, nullptr);
  EXPECT_NE(first, second);
  arena.deallocate(first);
  arena.deallocate(second);
  arena.deallocate(nullptr);
  EXPECT_EQ(arena.statistics().ignored_frees, 0u);
}

TEST(Arena, ForeignAndDoubleFreesAreCountedAndHarmless) {
  Arena arena(small());
  auto* block = static_cast<std::byte*>(arena.allocate(1000));
  test::fill(block, 1000, 1);
  int local = 0;
  arena.deallocate(&local);
  arena.deallocate(block + 128);
  EXPECT_EQ(arena.statistics().ignored_frees, 2u);
  EXPECT_TRUE(test::holds(block, 1000, 1));
  arena.deallocate(block);
  arena.deallocate(block);
  EXPECT_EQ(arena.statistics().ignored_frees, 3u);
  void* one = arena.allocate(1000);
  void* other = arena.allocate(1000);
  EXPECT_NE(one, other) << "freed twice, given out once";
}

TEST(Arena, UsableBytesCoverWhatWasAskedFor) {
  Arena arena(small());
  for (const std::size_t bytes : {0UL, 1UL, 128UL, 129UL, 65536UL, 100000UL, 3UL << 20}) {
    void* block = arena.allocate(bytes);
    const std::size_t usable = arena.usable_bytes(block);
    EXPECT_GE(usable, bytes);
    EXPECT_LE(usable, bytes + bytes / 8 + 128);
    test::fill(block, usable, bytes);
  }
  int local = 0;
  EXPECT_THROW(arena.usable_bytes(&local), Error);
}

TEST(Arena, TheCacheGivesTheSameBlockAgain) {
  Arena arena(small());
  void* first = arena.allocate(os::mib);
  arena.deallocate(first);
  ArenaStatistics before = arena.statistics();
  EXPECT_EQ(before.live_bytes, 0u);
  EXPECT_EQ(before.cached_bytes, os::mib);
  EXPECT_EQ(arena.allocate(os::mib), first);
  const ArenaStatistics after = arena.statistics();
  EXPECT_EQ(after.cache_hits, before.cache_hits + 1);
  EXPECT_EQ(after.cache_misses, 1u);
  EXPECT_EQ(after.allocations, 2u);
  EXPECT_EQ(after.cached_bytes, 0u);
  EXPECT_EQ(after.live_bytes, os::mib);
}

TEST(Arena, WithoutCacheNothingIsKept) {
  MemoryOptions options = small();
  options.cache = false;
  Arena arena(options);
  arena.deallocate(arena.allocate(os::mib));
  arena.deallocate(arena.allocate(os::mib));
  EXPECT_EQ(arena.statistics().cache_hits, 0u);
  EXPECT_EQ(arena.statistics().cached_bytes, 0u);
}

TEST(Arena, TrimGivesPagesBackAndJoinsNeighbours) {
  Arena arena(small());
  std::vector<void*> blocks;
  for (int i = 0; i < 8; ++i) blocks.push_back(arena.allocate(os::mib));
  void* last = arena.allocate(128);  // keeps the end
  for (void* block : blocks) test::fill(block, os::mib, 1);
  for (void* block : blocks) arena.deallocate(block);
  const std::size_t committed = arena.committed_bytes();
  const std::size_t before = inspect(arena.base(), committed).resident_bytes;
  arena.trim();
  EXPECT_EQ(arena.statistics().cached_bytes, 0u);
  EXPECT_LE(inspect(arena.base(), committed).resident_bytes + 6 * os::mib, before);
  auto* whole = static_cast<std::byte*>(arena.allocate(8 * os::mib));
  EXPECT_EQ(arena.committed_bytes(), committed) << "the eight had become one extent";
  test::fill(whole, 8 * os::mib, 2);
  EXPECT_TRUE(test::holds(whole, 8 * os::mib, 2));
  arena.deallocate(last);
}

TEST(Arena, GrowsWithoutMovingAndPeersSeeIt) {
  Arena arena(small());
  std::byte* base = arena.base();
  EXPECT_EQ(address(base) % os::huge_2m, 0u);
  std::vector<void*> blocks;
  for (std::uint64_t i = 0; i < 10; ++i) {
    blocks.push_back(arena.allocate(3 * os::mib));
    test::fill(blocks.back(), 3 * os::mib, i);
  }
  EXPECT_EQ(arena.base(), base);
  EXPECT_GE(arena.committed_bytes(), 30 * os::mib);
  EXPECT_LE(arena.committed_bytes(), arena.reserved_bytes());
  const os::Mapping peer = os::map_shared(arena.descriptor(), arena.committed_bytes());
  ASSERT_TRUE(peer);
  for (std::uint64_t i = 0; i < 10; ++i) {
    EXPECT_TRUE(test::holds(peer.data() + arena.offset(blocks[i]), 3 * os::mib, i));
  }
  EXPECT_EQ(os::grow_file(arena.descriptor(), 0), EPERM) << "sealed against shrinking";
}

TEST(Arena, ContainsItsCommittedRangeOnly) {
  Arena arena(small());
  auto* block = static_cast<std::byte*>(arena.allocate(1000));
  const std::size_t committed = arena.committed_bytes();
  EXPECT_TRUE(arena.contains(block, 1000));
  EXPECT_TRUE(arena.contains(arena.base(), committed));
  EXPECT_FALSE(arena.contains(arena.base(), committed + 1));
  EXPECT_FALSE(arena.contains(arena.base() + committed));
  EXPECT_FALSE(arena.contains(arena.base() - 1));
  EXPECT_FALSE(arena.contains(block, SIZE_MAX));
  EXPECT_FALSE(arena.contains(nullptr));
}

TEST(Arena, WhenItIsFullSaysSoAndGoesOn) {
  Arena arena(small(4 * os::mib));
  void* block = arena.allocate(3 * os::mib);
  for (const std::size_t bytes : {2 * os::mib, std::size_t{1} << 40, SIZE_MAX}) {
    try {
      arena.allocate(bytes);
      ADD_FAILURE() << bytes;
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::memory);
      EXPECT_NE(std::string(error.what()).find("ROPEWALK_ARENA_BYTES"), std::string::npos)
          << error.what();
    }
  }
  arena.deallocate(block);
  EXPECT_NO_THROW(arena.allocate(4 * os::mib)) << "cached blocks make room";
}

TEST(Arena, RequireGivesHugePagesOrAnError) {
  MemoryOptions options;
  options.pages = PagePolicy::require;
  options.reserve_bytes = 32 * os::mib;
  try {
    Arena arena(options);
    void* block = arena.allocate(5 * os::mib);
    EXPECT_TRUE(inspect(block, 5 * os::mib).all_huge());
    EXPECT_EQ(inspect(block, 5 * os::mib).resident_bytes, 5 * os::mib);
    EXPECT_GE(arena.statistics().huge_bytes, 5 * os::mib);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::memory);
    ASSERT_TRUE(test::may_lack_huge_pages(error.what())) << error.what();
    GTEST_SKIP() << error.what();
  }
}

TEST(Arena, PreferGivesMemoryInAnyCase) {
  MemoryOptions options;
  options.reserve_bytes = 32 * os::mib;
  Arena arena(options);
  void* block = arena.allocate(5 * os::mib);
  EXPECT_EQ(inspect(block, 5 * os::mib).resident_bytes, 5 * os::mib);
  if (arena.source() == PageSource::shmem_small) {
    EXPECT_NE(arena.downgrade(), "");
  }
}

TEST(Arena, NeverMeansSmallPages) {
  Arena arena(small());
  EXPECT_EQ(arena.source(), PageSource::shmem_small);
  EXPECT_EQ(arena.downgrade(), "");
  EXPECT_EQ(arena.statistics().huge_bytes, 0u);
}

TEST(Arena, OnlyGrowsOnMemoryThatPeersCanMap) {
  for (const PageSource source : {PageSource::memalign, PageSource::thp,
                                  PageSource::anonymous_hugetlb, PageSource::hugetlbfs_file}) {
    MemoryOptions options;
    options.source = source;
    try {
      Arena arena(options);
      ADD_FAILURE() << name(source);
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::argument);
      EXPECT_EQ(std::string(error.what()).find("source: "), 0u);
    }
  }
}

TEST(Arena, LeavesNothingBehind) {
  const std::byte* base = nullptr;
  {
    Arena arena(small());
    arena.allocate(os::mib);
    base = arena.base();
  }
  EXPECT_THROW(inspect(base, 1), Error);
}

TEST(Arena, ServesManyThreads) {
  Arena arena(small());
  std::vector<std::thread> threads;
  for (std::uint64_t id = 0; id < 4; ++id) {
    threads.emplace_back([&arena, id] {
      std::vector<std::pair<void*, std::size_t>> mine;
      for (std::uint64_t i = 0; i < 200; ++i) {
        const std::size_t bytes = (i * 7919 + id * 104729) % 40000;
        mine.emplace_back(arena.allocate(bytes), bytes);
        test::fill(mine.back().first, bytes, id);
        if (mine.size() < 8) continue;
        EXPECT_TRUE(test::holds(mine.front().first, mine.front().second, id));
        arena.deallocate(mine.front().first);
        mine.erase(mine.begin());
        if (i % 50 == 0) arena.trim();
      }
      for (const auto& [block, bytes] : mine) arena.deallocate(block);
    });
  }
  for (std::thread& thread : threads) thread.join();
  const ArenaStatistics end = arena.statistics();
  EXPECT_EQ(end.live_bytes, 0u);
  EXPECT_EQ(end.allocations, 800u);
  EXPECT_EQ(end.cache_hits + end.cache_misses, 800u);
  EXPECT_EQ(end.ignored_frees, 0u);
}

TEST(Buffer, IsZeroedMovesAndFreesItsBlock) {
  Arena arena(small());
  {
    void* dirty = arena.allocate(8000);
    test::fill(dirty, 8000, 1);
    arena.deallocate(dirty);
    Buffer<double> first(1000, arena);
    EXPECT_EQ(first.bytes(), 8000u);
    for (const double value : first) ASSERT_EQ(value, 0.0);
    first[999] = 2.5;
    Buffer<double> second(std::move(first));
    EXPECT_EQ(second[999], 2.5);
    second = Buffer<double>(3, arena);
    EXPECT_EQ(second.size(), 3u);
    EXPECT_THROW(Buffer<double>(SIZE_MAX / 4, arena), Error);
  }
  EXPECT_EQ(arena.statistics().live_bytes, 0u);
}

TEST(Allocator, PutsAVectorIntoTheArenaOfTheProcess) {
  std::vector<double, Allocator<double>> values(1000, 1.5);
  EXPECT_TRUE(Arena::process().contains(values.data(), 8000));
  EXPECT_EQ(&Arena::process(), &Arena::process());
  EXPECT_TRUE(inspect(values.data(), 8000).peers_can_map);
}

}  // namespace
}  // namespace ropewalk
