// Where the pages are: by first touch, huge at first use in communication, given back when freed.
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include <cstring>
#include <thread>
#include <vector>

#include "blocks.hpp"
#include "memory/child.hpp"
#include "memory/kernel_collapse.hpp"

namespace ropewalk {
namespace {

using test::arena_resident_bytes;

std::uint64_t minor_faults() {
  rusage use{};
  getrusage(RUSAGE_SELF, &use);
  return static_cast<std::uint64_t>(use.ru_minflt);
}

TEST(Backing, WhatIsNeverTouchedCostsNothing) {
  const std::size_t before = arena_resident_bytes();
  const test::Block sparse = test::block_of(os::gib);
  const test::Block zeroed(std::calloc(os::gib, 1));
  ASSERT_TRUE(test::is_in_arena(sparse.get()));
  ASSERT_TRUE(test::is_in_arena(zeroed.get()));
  static_cast<char*>(sparse.get())[os::gib / 2] = 1;
  EXPECT_EQ(static_cast<char*>(zeroed.get())[os::gib / 2], 0);
  EXPECT_LE(arena_resident_bytes(), before + 4 * os::huge_2m);
}

TEST(Backing, WhatDoesNotFitIsLibcs) {
  const std::uint64_t before = Arena::process().statistics().refusals;
  const test::Block large = test::block_of(Arena::process().reserved_bytes() + 4096);
  ASSERT_NE(large.get(), nullptr);
  EXPECT_FALSE(test::is_in_arena(large.get()));
  EXPECT_EQ(Arena::process().statistics().refusals, before + 1);
  static_cast<char*>(large.get())[5 * os::gib / 2] = 1;
}

TEST(Backing, AFullArenaLeavesTheRestToLibc) {
  std::vector<test::Block> blocks;
  const std::size_t each = Arena::process().reserved_bytes() / 8;
  for (int i = 0; i < 10; ++i) blocks.push_back(test::block_of(each));
  std::size_t inside = 0;
  for (const test::Block& block : blocks) {
    ASSERT_NE(block.get(), nullptr);
    inside += test::is_in_arena(block.get()) ? 1 : 0;
    test::fill(static_cast<std::byte*>(block.get()) + each / 2, 4096, 3);
  }
  EXPECT_GE(inside, 6u);
  EXPECT_LE(inside, 8u);
  blocks.clear();
  EXPECT_TRUE(test::is_in_arena(test::block_of(each).get())) << "room again";
}

TEST(Backing, CallocClearsWhatWasUsed) {
  constexpr std::size_t bytes = 3 * os::mib + 12345;
  for (int round = 0; round < 3; ++round) {
    const test::Block block(std::calloc(bytes, 1));
    ASSERT_TRUE(test::is_in_arena(block.get()));
    EXPECT_TRUE(test::is_zero(block.get(), bytes)) << round;
    std::memset(block.get(), 0xAB, bytes);
  }
  std::vector<test::Block> dirty;
  for (int i = 0; i < 30; ++i) {
    dirty.push_back(test::block_of(os::mib));
    std::memset(dirty.back().get(), 0xCD, os::mib);
  }
  dirty.clear();
  for (int i = 0; i < 10; ++i) {
    dirty.emplace_back(std::calloc(1, 200000 + 300000 * static_cast<std::size_t>(i)));
    EXPECT_TRUE(test::is_zero(dirty.back().get(), 200000 + 300000 * static_cast<std::size_t>(i)));
  }
}

TEST(Backing, FreedMemoryGoesBackToTheSystem) {
  const std::size_t keeps = Arena::process().reserved_bytes() / 64;  // see large.cc
  constexpr std::size_t all = 150 * os::mib;
  Arena::process().trim();
  const std::size_t before = arena_resident_bytes();
  for (const std::size_t each : {200 * os::kib, 3 * os::mib, 100 * os::mib}) {
    std::vector<test::Block> blocks;
    for (std::size_t sum = 0; sum < all; sum += each) {
      blocks.push_back(test::block_of(each));
      std::memset(blocks.back().get(), 1, each);
    }
    EXPECT_GE(arena_resident_bytes(), before + all);
    blocks.clear();
    EXPECT_LE(arena_resident_bytes(), before + keeps + 4 * os::huge_2m) << each;
  }
  Arena::process().trim();
  EXPECT_LE(arena_resident_bytes(), before + 4 * os::huge_2m);
}

TEST(Backing, AHotLoopFaultsOnce) {
  for (const std::size_t bytes : {256 * os::kib, os::mib, 16 * os::mib}) {
    constexpr int rounds = 20;
    std::memset(test::block_of(bytes).get(), 1, bytes);
    const std::uint64_t before = minor_faults();
    for (int i = 0; i < rounds; ++i) std::memset(test::block_of(bytes).get(), i, bytes);
    EXPECT_LE(minor_faults() - before, bytes / 4096) << bytes;
  }
}

TEST(Backing, SizesWrittenWholeGetHugePagesAtOnce) {
  if (!test::kernel_collapses()) GTEST_SKIP() << "no MADV_COLLAPSE for memfds here";
  constexpr std::size_t bytes = 5 * os::mib;
  std::vector<test::Block> blocks;
  const std::uint64_t huge = Arena::process().statistics().huge_bytes;
  for (int i = 0; i < 6; ++i) {
    blocks.push_back(test::block_of(bytes));
    test::fill(blocks.back().get(), bytes, 1);
  }
  if (Arena::process().statistics().huge_bytes == huge) {
    GTEST_SKIP() << "more than one NUMA node, or no huge page to be had";
  }
  EXPECT_FALSE(inspect(blocks[0].get(), bytes).all_huge()) << "the first by first touch";
}

TEST(Backing, SizesWrittenInPartNever) {
  constexpr std::size_t bytes = 7 * os::mib;
  const std::size_t before = arena_resident_bytes();
  std::vector<test::Block> blocks;
  for (int i = 0; i < 50; ++i) {
    blocks.push_back(test::block_of(bytes));
    static_cast<char*>(blocks.back().get())[0] = 1;
  }
  EXPECT_LE(arena_resident_bytes(), before + 50 * os::mib);
}

TEST(Backing, FirstUseInCommunicationMakesItHuge) {
  constexpr std::size_t bytes = 9 * os::mib + 4321;
  const test::Block block = test::block_of(bytes);
  test::fill(block.get(), bytes / 2, 7);
  const auto* tail = static_cast<const std::byte*>(block.get()) + bytes / 2;
  Arena::process().make_huge(block.get(), bytes);
  EXPECT_TRUE(test::holds(block.get(), bytes / 2, 7));
  EXPECT_TRUE(test::is_zero(tail, bytes - bytes / 2));
  if (!test::kernel_collapses()) GTEST_SKIP() << "no MADV_COLLAPSE for memfds here";
  if (!inspect(block.get(), bytes).all_huge()) {
    EXPECT_TRUE(test::may_lack_huge_pages(Arena::process().downgrade()))
        << Arena::process().downgrade();
  }
}

TEST(Backing, HugeWhileOthersWrite) {
  constexpr std::size_t bytes = 8 * os::mib;
  const test::Block block = test::block_of(bytes);
  auto* words = static_cast<std::uint64_t*>(block.get());
  std::thread writer([&] {
    for (std::size_t i = 0; i < bytes / 8; ++i) words[i] = i;
  });
  for (std::size_t at = 0; at < bytes; at += os::mib) {
    Arena::process().make_huge(static_cast<std::byte*>(block.get()) + at, os::mib);
  }
  writer.join();
  for (std::size_t i = 0; i < bytes / 8; ++i) ASSERT_EQ(words[i], i);
}

TEST(Backing, HugeOnlyWhatIsInTheArena) {
  std::vector<std::byte> small(1000);
  Arena::process().make_huge(small.data(), small.size());
  Arena::process().make_huge(nullptr, 0);
  const test::Block block = test::block_of(os::mib);
  Arena::process().make_huge(block.get(), 0);
  Arena::process().make_huge(block.get(), SIZE_MAX / 2);
}

// What a daemon does: close all descriptors, and open files of its own.
TEST(Backing, ADescriptorThatTheProgramClosedIsNotUsed) {
  EXPECT_EQ(test::in_child([] {
              const int arena = Arena::process().descriptor();
              close(arena);
              const int file = memfd_create("of the program", 0);
              if (dup2(file, arena) != arena) return 1;
              test::Block kept = test::block_of(os::mib);
              std::vector<test::Block> blocks;
              for (int i = 0; i < 20; ++i) {
                blocks.push_back(test::block_of(100 * os::mib));
                if (blocks.back() == nullptr) return 2;
                test::fill(blocks.back().get(), 4096, 1);
              }
              struct stat state {};
              if (fstat(file, &state) != 0 || state.st_size != 0) return 3;
              const pid_t child = test::start_child([&] {
                struct stat again {};
                return fstat(arena, &again) == 0 && again.st_ino == state.st_ino ? 0 : 4;
              });
              return Arena::process().descriptor() == -1 ? test::wait_for(child) : 5;
            }),
            0);
}

}  // namespace
}  // namespace ropewalk
