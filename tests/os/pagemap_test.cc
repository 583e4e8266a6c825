// Tests the scan against the older interfaces of the kernel.
#include "os/pagemap.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>

#include <numeric>

#include "os/mapping.hpp"

namespace ropewalk::os {
namespace {

class PageMap : public testing::Test {
 protected:
  static constexpr std::size_t pages = 2000;  // more runs than one call of the ioctl returns

  void SetUp() override {
    void* found = mmap(nullptr, pages * page_bytes(), PROT_READ | PROT_WRITE,
                       MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(found, MAP_FAILED);
    map_ = Mapping(found, pages * page_bytes());
    advise_small(found, map_.bytes());
  }
  std::byte* page(std::size_t index) { return map_.data() + index * page_bytes(); }

  Mapping map_;
};

std::size_t sum(const std::vector<PageRun>& runs) {
  std::size_t bytes = 0;
  for (const PageRun& run : runs) bytes += run.end - run.begin;
  return bytes;
}

TEST_F(PageMap, CountsTouchedPagesByEitherMethod) {
  for (std::size_t i = 0; i < pages; i += 2) *page(i) = std::byte{1};
  const std::size_t expected = pages / 2 * page_bytes();
  EXPECT_EQ(sum(present_pages(map_.data(), map_.bytes())), expected);
  EXPECT_EQ(summarize_pages(map_.data(), map_.bytes()).resident_bytes, expected);
  const auto runs = scan_pages(map_.data(), map_.bytes());
  if (!runs) GTEST_SKIP() << "no PAGEMAP_SCAN in this kernel";
  EXPECT_EQ(runs->size(), pages / 2);
  EXPECT_EQ(sum(*runs), expected);
}

TEST_F(PageMap, ClipsToTheRangeAskedFor) {
  *page(3) = std::byte{1};
  *page(4) = std::byte{1};
  const auto runs = scan_pages(page(3) + 100, page_bytes());
  if (!runs) GTEST_SKIP() << "no PAGEMAP_SCAN in this kernel";
  ASSERT_EQ(runs->size(), 1u);
  EXPECT_EQ(runs->front().begin, reinterpret_cast<std::uintptr_t>(page(3) + 100));
  EXPECT_EQ(sum(*runs), page_bytes());
}

TEST_F(PageMap, TheZeroPageIsNotPresent) {
  const auto* where = reinterpret_cast<const volatile unsigned char*>(page(7));
  EXPECT_EQ(*where + 0, 0);  // a read maps the zero page
  const auto runs = scan_pages(map_.data(), map_.bytes());
  if (!runs) GTEST_SKIP() << "no PAGEMAP_SCAN in this kernel";
  EXPECT_EQ(sum(*runs), 0u);
}

TEST_F(PageMap, SmapsKnowsTheSizesOfAMapping) {
  for (std::size_t i = 0; i < 10; ++i) *page(i) = std::byte{1};
  const auto areas = mapped_areas(map_.data(), map_.bytes(), true);
  ASSERT_FALSE(areas.empty());
  EXPECT_LE(areas.front().begin, reinterpret_cast<std::uintptr_t>(map_.data()));
  std::size_t resident = 0;
  for (const MappedArea& area : areas) {
    EXPECT_EQ(area.page_bytes, page_bytes());
    resident += area.resident_bytes;
  }
  EXPECT_GE(resident, 10 * page_bytes());
}

TEST_F(PageMap, FindsHoles) {
  ASSERT_EQ(munmap(page(100), page_bytes()), 0);
  const auto areas = mapped_areas(page(99), 3 * page_bytes(), false);
  ASSERT_EQ(areas.size(), 2u);
  EXPECT_EQ(areas[0].end, reinterpret_cast<std::uintptr_t>(page(100)));
  EXPECT_EQ(areas[1].begin, reinterpret_cast<std::uintptr_t>(page(101)));
}

TEST_F(PageMap, NodesAddUpToWhatIsResident) {
  for (std::size_t i = 0; i < 1500; ++i) *page(i) = std::byte{1};
  const auto runs = present_pages(map_.data(), map_.bytes());
  const auto nodes = bytes_by_node(runs);
  if (nodes.empty()) GTEST_SKIP() << "no move_pages here";
  EXPECT_EQ(std::accumulate(nodes.begin(), nodes.end(), std::size_t{0}), sum(runs));
}

TEST(SummarizeArea, GivesALowerBoundOfHugeBytesForAPartOfAMixedMapping) {
  // 8 MiB mapped, 6 of them resident: 4 huge, 2 small; 3 MiB of ours are resident.
  const MappedArea area{0, 8 * mib, 4096, 6 * mib, 4 * mib};
  const PageSummary part = summarize_area(area, {{1 * mib, 4 * mib, false}});
  EXPECT_EQ(part.resident_bytes, 3 * mib);
  EXPECT_EQ(part.huge_bytes, 1 * mib);
}

}  // namespace
}  // namespace ropewalk::os
