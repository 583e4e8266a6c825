// Tests PageBlock, rung by rung, on whatever this machine has. Rungs that need a pool are in
// pool_test.cc.
#include "memory/ladder.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <cstring>
#include <new>

#include "child.hpp"
#include "kernel_collapse.hpp"
#include "os/file.hpp"
#include "os/mapping.hpp"
#include "os/pagemap.hpp"
#include "pattern.hpp"

namespace ropewalk::memory {
namespace {

MemoryOptions with_source(PageSource source) {
  MemoryOptions options;
  options.source = source;
  return options;
}
MemoryOptions with_policy(PagePolicy policy) {
  MemoryOptions options;
  options.pages = policy;
  return options;
}

bool is_zero(const PageBlock& block) {
  return block.data()[0] == std::byte{0} &&
         std::memcmp(block.data(), block.data() + 1, block.bytes() - 1) == 0;
}

TEST(Rungs, GoFromBestToLastAndAreOneWhereNamed) {
  using Sources = std::vector<PageSource>;
  EXPECT_EQ(rungs(with_policy(PagePolicy::prefer)),
            (Sources{PageSource::hugetlb_memfd, PageSource::shmem_huge, PageSource::shmem_small}));
  EXPECT_EQ(rungs(with_policy(PagePolicy::require)),
            (Sources{PageSource::hugetlb_memfd, PageSource::shmem_huge}));
  EXPECT_EQ(rungs(with_policy(PagePolicy::never)), Sources{PageSource::shmem_small});
  EXPECT_EQ(rungs(with_source(PageSource::memalign)), Sources{PageSource::memalign});
}

TEST(PageBlock, SmallPagesAreSmallResidentAndShared) {
  const PageBlock block(3 * os::mib + 5, with_policy(PagePolicy::never));
  EXPECT_EQ(block.source(), PageSource::shmem_small);
  EXPECT_EQ(block.bytes(), 3 * os::mib + 5);
  EXPECT_GE(block.mapped_bytes(), block.bytes());
  EXPECT_TRUE(is_zero(block));
  const Inspection found = inspect(block.data(), block.mapped_bytes());
  EXPECT_EQ(found.resident_bytes, block.mapped_bytes()) << "all pages are there before any touch";
  const os::Mapping peer = os::map_shared(block.descriptor(), block.mapped_bytes());
  ASSERT_TRUE(peer);
  test::fill(block.data(), block.bytes(), 1);
  EXPECT_TRUE(test::holds(peer.data(), block.bytes(), 1));
}

TEST(PageBlock, MemalignIsTheBaseline) {
  const PageBlock block(5 * os::mib, with_source(PageSource::memalign));
  EXPECT_EQ(block.source(), PageSource::memalign);
  EXPECT_EQ(block.descriptor(), -1);
  EXPECT_TRUE(is_zero(block));
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % 4096, 0u);
  EXPECT_EQ(inspect(block.data(), block.bytes()).resident_bytes, block.bytes());
}

TEST(PageBlock, ThpIsWhateverTheSystemGivesUnasked) {
  const PageBlock block(5 * os::mib, with_source(PageSource::thp));
  EXPECT_EQ(block.source(), PageSource::thp);
  EXPECT_EQ(block.descriptor(), -1);
  EXPECT_EQ(block.mapped_bytes(), 5 * os::mib);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(block.data()) % os::huge_2m, 0u);
  EXPECT_TRUE(is_zero(block));
  EXPECT_EQ(inspect(block.data(), block.bytes()).resident_bytes, block.bytes());
  const auto setting = os::read_text("/sys/kernel/mm/transparent_hugepage/enabled").value_or("");
  const bool unasked = setting.find("[always]") != std::string::npos;
  if (!unasked) {
    EXPECT_EQ(os::summarize_pages(block.data(), block.bytes()).huge_bytes, 0u) << setting;
  }
}

TEST(PageBlock, HugeOnesAreVerifiedByTheKernel) {
  try {
    const PageBlock block(5 * os::mib, with_source(PageSource::shmem_huge));
    EXPECT_EQ(block.mapped_bytes(), 6 * os::mib);
    EXPECT_TRUE(is_zero(block));
    const Inspection found = inspect(block.data(), block.mapped_bytes());
    EXPECT_TRUE(found.all_huge());
    EXPECT_EQ(found.resident_bytes, 6 * os::mib);
    EXPECT_EQ(block.downgrade(), "");
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::memory);
    ASSERT_TRUE(test::may_lack_huge_pages(error.what())) << error.what();
    GTEST_SKIP() << error.what();
  }
}

TEST(PageBlock, PreferTakesTheBestAndSaysWhyNotBetter) {
  const PageBlock block(5 * os::mib);
  if (block.source() != PageSource::hugetlb_memfd) {
    EXPECT_NE(block.downgrade().find("hugetlb-memfd: "), std::string::npos);
    EXPECT_NE(block.downgrade().find("ropewalk hugepages reserve"), std::string::npos);
  }
  const Inspection found = inspect(block.data(), block.mapped_bytes());
  EXPECT_EQ(found.resident_bytes, block.mapped_bytes());
  if (block.source() != PageSource::shmem_small) {
    EXPECT_TRUE(found.all_huge());
  }
}

// This is the point of the rung shmem_huge: huge pages are guaranteed to ordinary users.
TEST(PageBlock, AnOrdinaryUserGetsHugePagesWithoutAPool) {
  constexpr int none_to_be_had = 77;
  const int code = test::in_child([] {
    if (!test::become_ordinary_user()) return 1;
    try {
      const PageBlock block(4 * os::mib, with_source(PageSource::shmem_huge));
      return inspect(block.data(), block.bytes()).all_huge() && is_zero(block) ? 0 : 2;
    } catch (const Error& error) {
      std::fprintf(stderr, "%s\n", error.what());
      return test::may_lack_huge_pages(error.what()) ? none_to_be_had : 3;
    }
  });
  if (code == none_to_be_had) GTEST_SKIP() << "this kernel collapses nothing (see above)";
  EXPECT_EQ(code, 0);
}

TEST(PageBlock, MovesWithItsMemory) {
  PageBlock first(100, with_policy(PagePolicy::never));
  test::fill(first.data(), 100, 3);
  std::byte* data = first.data();
  PageBlock second(std::move(first));
  EXPECT_EQ(first.data(), nullptr);
  EXPECT_EQ(first.descriptor(), -1);
  EXPECT_EQ(second.data(), data);
  EXPECT_TRUE(test::holds(second.data(), 100, 3));
  PageBlock third(200, with_source(PageSource::memalign));
  third = std::move(second);
  EXPECT_EQ(third.data(), data);
  EXPECT_EQ(third.bytes(), 100u);
  third = PageBlock();
  EXPECT_TRUE(os::mapped_areas(data, 1, false).empty() || third.data() == nullptr);
}

TEST(PageBlock, OfNoBytesAndOfTooMany) {
  const PageBlock nothing(0, with_policy(PagePolicy::never));
  EXPECT_NE(nothing.data(), nullptr);
  for (const PageSource source :
       {PageSource::shmem_small, PageSource::shmem_huge, PageSource::hugetlb_memfd,
        PageSource::anonymous_hugetlb, PageSource::memalign, PageSource::thp}) {
    for (const std::size_t bytes : {SIZE_MAX, SIZE_MAX / 4, std::size_t{1} << 46}) {
      try {
        const PageBlock block(bytes, with_source(source));
        ADD_FAILURE() << name(source) << " gave " << bytes;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::memory) << error.what();
      }
    }
  }
}

TEST(PageBlock, PagesOf1GiBOnlyOnRequest) {
  try {
    const PageBlock block(1, with_source(PageSource::hugetlb_1g_memfd));
    EXPECT_EQ(block.mapped_bytes(), os::gib);
    EXPECT_EQ(inspect(block.data(), os::gib).pages.front().page_bytes, os::gib);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::memory);
    EXPECT_NE(std::string(error.what()).find("1 GiB"), std::string::npos) << error.what();
  }
}

}  // namespace
}  // namespace ropewalk::memory
