// The hugetlb rungs with the pool empty, partly full and full. Other programs may take pages
// meanwhile, so the tests exhaust the pool themselves and count on no page but their own.
#include <gtest/gtest.h>

#include <vector>

#include "child.hpp"
#include "memory/ladder.hpp"
#include "os/mapping.hpp"
#include "pattern.hpp"
#include "pool_guard.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk {
namespace {

class Pool : public testing::Test {
 protected:
  static constexpr std::uint64_t pages = 8;

  bool set(std::uint64_t count) {
    reason_ = guard_.set(count);
    return reason_.empty();
  }
  static MemoryOptions source(PageSource which) {
    MemoryOptions options;
    options.source = which;
    return options;
  }

  test::PoolGuard guard_;
  std::string reason_;
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

TEST_F(Pool, EmptyIsAnErrorThatNamesTheCommand) {
  if (!set(0)) GTEST_SKIP() << reason_;
  for (const PageSource which : {PageSource::hugetlb_memfd, PageSource::anonymous_hugetlb}) {
    const std::string text = memory_error(3 * os::mib, source(which));
    EXPECT_NE(text.find("`ropewalk hugepages reserve 2`"), std::string::npos) << text;
  }
}

TEST_F(Pool, FullGivesVerifiedPages) {
  if (!set(pages)) GTEST_SKIP() << reason_;
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
  EXPECT_EQ(PageBlock(1).source(), PageSource::hugetlb_memfd) << "the best rung of `prefer`";
}

TEST_F(Pool, PartlyFullFallsToTheNextRungAndNeverSignals) {
  if (!set(pages)) GTEST_SKIP() << reason_;
  std::vector<PageBlock> taken;
  for (std::uint64_t i = 0; i <= pages; ++i) {  // one more than there are
    taken.emplace_back(os::huge_2m);
    test::fill(taken.back().data(), os::huge_2m, i);
  }
  EXPECT_NE(taken.back().source(), PageSource::hugetlb_memfd);
  EXPECT_NE(taken.back().downgrade().find("the pool of 2 MiB pages has 0 of 8 free"),
            std::string::npos)
      << taken.back().downgrade();
  for (std::uint64_t i = 0; i <= pages; ++i) {
    EXPECT_TRUE(test::holds(taken[i].data(), os::huge_2m, i));
  }
}

TEST_F(Pool, AnArenaOnItEndsWithAnErrorAndWithWholeBlocks) {
  if (!set(pages)) GTEST_SKIP() << reason_;
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
}

// Freed, given back to the pool, taken by somebody else: the arena's range is mapped all along.
TEST_F(Pool, TrimmedPagesTakenByOthersAreAnErrorAndNoSignal) {
  if (!set(pages)) GTEST_SKIP() << reason_;
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
}

TEST_F(Pool, AnArenaWithARangeThatFitsLivesOnItWhole) {
  if (!set(pages)) GTEST_SKIP() << reason_;
  MemoryOptions options;
  options.reserve_bytes = pages * os::huge_2m;
  {
    Arena arena(options);
    EXPECT_EQ(arena.source(), PageSource::hugetlb_memfd);
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
}

TEST_F(Pool, AFileOnHugetlbfsOrTheCommandToMountIt) {
  if (!set(pages)) GTEST_SKIP() << reason_;
  try {
    const PageBlock block(3 * os::mib, source(PageSource::hugetlbfs_file));
    EXPECT_TRUE(inspect(block.data(), block.mapped_bytes()).all_huge());
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("mount -t hugetlbfs"), std::string::npos)
        << error.what();
  }
}

TEST_F(Pool, OrdinaryUsersMayTakeThePool) {
  if (!set(pages)) GTEST_SKIP() << reason_;
  EXPECT_EQ(test::in_child([] {
              if (!test::become_ordinary_user()) return 1;
              const PageBlock block(4 * os::mib, source(PageSource::hugetlb_memfd));
              return inspect(block.data(), 4 * os::mib).all_huge() ? 0 : 2;
            }),
            0);
}

TEST_F(Pool, AChildCopiesPoolMemoryWithoutThePool) {
  if (!set(2)) GTEST_SKIP() << reason_;
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
}

}  // namespace
}  // namespace ropewalk
