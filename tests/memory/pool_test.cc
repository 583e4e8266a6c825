// Tests the hugetlb rungs with the pool empty, partly full and full. It is a program of its own,
// because ctest runs it alone: other tests would take pages of the pool. Where another program on
// the machine does so nevertheless, a test is skipped.
#include <gtest/gtest.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <vector>

#include "child.hpp"
#include "memory/ladder.hpp"
#include "memory/malloc_blocks.hpp"
#include "os/mapping.hpp"
#include "pattern.hpp"
#include "pool_guard.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk {
namespace {

class Pool : public testing::Test {
 protected:
  static constexpr std::uint64_t pages = 8;

  // Runs `body` with a pool of `count` pages.
  template <class Body>
  void with_pool(std::uint64_t count, Body&& body) {
    const std::string reason = guard_.set(count);
    if (!reason.empty()) GTEST_SKIP() << reason;
    try {
      body();
    } catch (const Error& error) {
      if (!is_short(error.what())) throw;
      GTEST_SKIP() << "another program has taken pages of the pool: " << error.what();
    }
  }
  // The pool had too few pages. It was full when the test began.
  static bool is_short(const std::string& text) {
    return text.find("ropewalk hugepages reserve") != std::string::npos;
  }
  static void require_from_pool(PageSource found, const std::string& downgrade) {
    if (found != PageSource::hugetlb_memfd && is_short(downgrade)) {
      throw Error(ErrorCode::memory, downgrade);
    }
    EXPECT_EQ(found, PageSource::hugetlb_memfd) << downgrade;
  }
  static MemoryOptions source(PageSource which) {
    MemoryOptions options;
    options.source = which;
    return options;
  }

  test::PoolGuard guard_;
};

std::string memory_error(std::size_t bytes, const MemoryOptions& options) {
  try {
    const PageBlock block(bytes, options);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::memory);
    return error.what();
  }
  return "no error";
}

// Once given back, a page of the pool might be somebody else's: touching it again would kill.
TEST_F(Pool, WhatTheProgramDiscardsIsZeroAndStays) {
  with_pool(pages, [&] {
    MemoryOptions options = source(PageSource::hugetlb_memfd);
    options.reserve_bytes = pages * os::huge_2m;
    memory::ArenaState arena(options);
    auto* block = static_cast<std::byte*>(arena.allocate(6 * os::mib, 4096));
    for (const int protection : {PROT_READ | PROT_WRITE, PROT_NONE}) {
      std::memset(block, 7, 6 * os::mib);
      const auto before = os::read_huge_pool(os::huge_2m);
      std::byte* part = block + 4096;
      ASSERT_EQ(mprotect(block, 6 * os::mib, protection), 0);
      EXPECT_EQ(memory::MallocBlocks(arena).discard(part, 3 * os::mib, false), 0);
      ASSERT_EQ(mprotect(block, 6 * os::mib, PROT_READ | PROT_WRITE), 0);
      const auto after = os::read_huge_pool(os::huge_2m);
      EXPECT_EQ(before->free, after->free);
      EXPECT_EQ(std::count(part, part + 3 * os::mib, std::byte{0}), 3 * os::mib);
      EXPECT_EQ(std::count(block, block + 6 * os::mib, std::byte{7}), 3 * os::mib);
    }
  });
}

TEST_F(Pool, EmptyIsAnErrorThatNamesTheCommand) {
  with_pool(0, [&] {
    for (const PageSource which : {PageSource::hugetlb_memfd, PageSource::anonymous_hugetlb}) {
      const std::string text = memory_error(3 * os::mib, source(which));
      EXPECT_NE(text.find("`ropewalk hugepages reserve 2`"), std::string::npos) << text;
    }
  });
}

TEST_F(Pool, FullGivesVerifiedPages) {
  with_pool(pages, [&] {
    for (const PageSource which : {PageSource::hugetlb_memfd, PageSource::anonymous_hugetlb}) {
      const PageBlock block(3 * os::mib, source(which));
      EXPECT_EQ(block.mapped_bytes(), 4 * os::mib);
      EXPECT_EQ(block.downgrade(), "");
      const Inspection found = inspect(block.data(), block.mapped_bytes());
      ASSERT_EQ(found.pages.size(), 1u);
      EXPECT_EQ(found.pages[0].page_bytes, os::huge_2m);
      EXPECT_EQ(found.resident_bytes, 4 * os::mib);
      test::fill(block.data(), block.mapped_bytes(), 1);
      EXPECT_TRUE(test::holds(block.data(), block.mapped_bytes(), 1));
    }
    const PageBlock best(1);
    require_from_pool(best.source(), best.downgrade());
  });
}

TEST_F(Pool, PartlyFullFallsToTheNextRungAndNeverSignals) {
  with_pool(pages, [&] {
    std::vector<PageBlock> taken;
    do {
      taken.emplace_back(os::huge_2m);
      test::fill(taken.back().data(), os::huge_2m, taken.size());
    } while (taken.back().source() == PageSource::hugetlb_memfd && taken.size() <= pages);
    EXPECT_NE(taken.back().source(), PageSource::hugetlb_memfd) << "a pool of 8 pages gave 9";
    EXPECT_TRUE(is_short(taken.back().downgrade())) << taken.back().downgrade();
    for (std::size_t i = 0; i < taken.size(); ++i) {
      EXPECT_TRUE(test::holds(taken[i].data(), os::huge_2m, i + 1));
    }
  });
}

TEST_F(Pool, AnArenaOnItEndsWithAnErrorAndWithWholeBlocks) {
  with_pool(pages, [&] {
    MemoryOptions options = source(PageSource::hugetlb_memfd);
    options.reserve_bytes = 64 * os::mib;
    Arena arena(options);
    std::vector<void*> blocks;
    try {
      for (std::uint64_t i = 0; i <= pages; ++i) {
        void* block = arena.allocate(os::huge_2m);
        blocks.push_back(block);
        test::fill(block, os::huge_2m, i);
      }
      ADD_FAILURE() << "a pool of 8 pages gave 9";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::memory);
      EXPECT_NE(std::string(error.what()).find("ropewalk hugepages reserve"), std::string::npos);
    }
    EXPECT_GE(blocks.size(), 1u);
    for (std::size_t i = 0; i < blocks.size(); ++i) {
      EXPECT_TRUE(test::holds(blocks[i], os::huge_2m, i));
      EXPECT_TRUE(inspect(blocks[i], os::huge_2m).all_huge());
    }
    arena.deallocate(blocks.back());
    EXPECT_NO_THROW(arena.allocate(os::huge_2m)) << "what was freed can be had again";
  });
}

// Freed, given back to the pool, taken by somebody else: the arena's range is mapped all along.
TEST_F(Pool, TrimmedPagesTakenByOthersAreAnErrorAndNoSignal) {
  with_pool(pages, [&] {
    MemoryOptions options = source(PageSource::hugetlb_memfd);
    options.reserve_bytes = 64 * os::mib;
    Arena arena(options);
    arena.deallocate(arena.allocate(4 * os::mib));
    arena.trim();
    std::vector<PageBlock> others;
    while (others.size() <= pages) {
      others.emplace_back(os::huge_2m);
      if (others.back().source() != PageSource::hugetlb_memfd) break;
    }
    try {
      void* block = arena.allocate(4 * os::mib);
      test::fill(block, 4 * os::mib, 5);  // pages that the arena kept are fine, too
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::memory);
    }
    others.clear();
    void* block = arena.allocate(4 * os::mib);
    test::fill(block, 4 * os::mib, 6);
    EXPECT_TRUE(test::holds(block, 4 * os::mib, 6));
  });
}

TEST_F(Pool, AnArenaWithARangeThatFitsLivesOnItWhole) {
  with_pool(pages, [&] {
    MemoryOptions options;
    options.reserve_bytes = pages * os::huge_2m;
    {
      Arena arena(options);
      require_from_pool(arena.source(), arena.downgrade());
      EXPECT_EQ(arena.committed_bytes(), options.reserve_bytes);
      EXPECT_EQ(arena.downgrade(), "");
      const PageBlock other(os::huge_2m);
      EXPECT_NE(other.source(), PageSource::hugetlb_memfd) << "the pages are promised to the arena";
      void* all = arena.allocate(options.reserve_bytes);
      test::fill(all, options.reserve_bytes, 1);
      EXPECT_TRUE(inspect(all, options.reserve_bytes).all_huge());
    }
    options.reserve_bytes += os::huge_2m;
    Arena larger(options);
    EXPECT_NE(larger.source(), PageSource::hugetlb_memfd);
    EXPECT_NE(larger.downgrade().find("hugetlb-memfd: "), std::string::npos);
    test::fill(larger.allocate(options.reserve_bytes), options.reserve_bytes, 2);
  });
}

// Mounts hugetlbfs where only this process sees it.
bool mount_hugetlbfs(const std::string& directory) {
  return unshare(CLONE_NEWNS) == 0 &&
         mount("none", "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
         mount("none", directory.c_str(), "hugetlbfs", 0, "pagesize=2M,mode=1777") == 0;
}

TEST_F(Pool, AFileOnHugetlbfsLeavesNoName) {
  constexpr int not_allowed = 77;
  std::string directory = (std::filesystem::temp_directory_path() / "rw-test-XXXXXX").string();
  ASSERT_NE(mkdtemp(directory.data()), nullptr);
  int code = 0;
  with_pool(pages, [&] {
    code = test::in_child([&] {
      if (!mount_hugetlbfs(directory)) return not_allowed;
      const PageBlock block(3 * os::mib, source(PageSource::hugetlbfs_file));
      if (!inspect(block.data(), block.mapped_bytes()).all_huge()) return 1;
      test::fill(block.data(), block.bytes(), 1);
      const os::Mapping peer = os::map_shared(block.descriptor(), 4 * os::mib, 0, os::huge_2m);
      if (!peer || !test::holds(peer.data(), block.bytes(), 1)) return 2;
      return std::filesystem::is_empty(directory) ? 0 : 3;
    });
  });
  std::filesystem::remove(directory);
  if (code == not_allowed) GTEST_SKIP() << "no private mounts here";
  EXPECT_EQ(code, 0);
}

TEST_F(Pool, WithoutHugetlbfsTheErrorSaysHowToMountIt) {
  const std::string text = memory_error(3 * os::mib, source(PageSource::hugetlbfs_file));
  if (text == "no error" || is_short(text)) GTEST_SKIP() << "this machine has hugetlbfs mounted";
  EXPECT_NE(text.find("mount -t hugetlbfs"), std::string::npos) << text;
}

TEST_F(Pool, OrdinaryUsersMayTakeThePool) {
  with_pool(pages, [&] {
    constexpr int taken_by_others = 77;
    const int code = test::in_child([] {
      if (!test::become_ordinary_user()) return 1;
      try {
        const PageBlock block(4 * os::mib, source(PageSource::hugetlb_memfd));
        return inspect(block.data(), 4 * os::mib).all_huge() ? 0 : 2;
      } catch (const Error& error) {
        return is_short(error.what()) ? taken_by_others : 3;
      }
    });
    if (code == taken_by_others) throw Error(ErrorCode::memory, "ropewalk hugepages reserve");
    EXPECT_EQ(code, 0);
  });
}

TEST_F(Pool, AChildCopiesPoolMemoryWithoutThePool) {
  with_pool(2, [&] {
    for (const PageSource which : {PageSource::hugetlb_memfd, PageSource::anonymous_hugetlb}) {
      const PageBlock block(4 * os::mib, source(which));  // all there is
      test::fill(block.data(), block.bytes(), 1);
      EXPECT_EQ(test::in_child([&] {
                  if (!test::holds(block.data(), block.bytes(), 1)) return 1;
                  test::fill(block.data(), block.bytes(), 2);
                  return test::holds(block.data(), block.bytes(), 2) ? 0 : 2;
                }),
                0);
      EXPECT_TRUE(test::holds(block.data(), block.bytes(), 1));
    }
  });
}

}  // namespace
}  // namespace ropewalk
