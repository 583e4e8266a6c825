// The pointer chase of the memory benchmark.
#include <gtest/gtest.h>

#include <cstring>
#include <set>
#include <vector>

#include "common/pages.hpp"
#include "memory/pointer_chase.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t page = 4096;

TEST(PointerChase, VisitsEachPageOnceAndReturns) {
  for (const std::size_t pages : {1U, 2U, 37U, 1024U}) {
    const PageBlock block = page_block("small", pages * page);
    const PointerChase chase(block.data(), pages * page, 1);
    ASSERT_EQ(chase.loads(), pages);
    EXPECT_EQ(chase.go(1), chase.begin());
    EXPECT_EQ(chase.go(3), chase.begin());
    std::set<std::ptrdiff_t> seen;
    std::set<std::ptrdiff_t> lines;
    const auto* at = static_cast<const std::byte*>(chase.begin());
    for (std::size_t i = 0; i < pages; ++i) {
      const std::ptrdiff_t offset = at - block.data();
      seen.insert(offset / static_cast<std::ptrdiff_t>(page));
      lines.insert(offset % static_cast<std::ptrdiff_t>(page));
      std::memcpy(&at, at, sizeof at);
    }
    EXPECT_EQ(seen.size(), pages);
    EXPECT_TRUE(pages < 1000 || lines.size() > 32) << "all lines of a page are used";
  }
}

TEST(PointerChase, FitsIntoLessThanAPage) {
  const PageBlock block = page_block("small", page);
  for (const std::size_t bytes : {64U, 100U, 4000U}) {
    const PointerChase chase(block.data(), bytes, 7);
    EXPECT_EQ(chase.loads(), 1U);
    const auto* begin = static_cast<const std::byte*>(chase.begin());
    EXPECT_LE(begin + 8, block.data() + bytes);
    EXPECT_EQ(chase.go(5), chase.begin());
  }
}

TEST(TlbMissCounter, CountsWhatSmallPagesCost) {
  TlbMissCounter counter;
  if (!counter.refusal().empty()) {
    EXPECT_NE(counter.refusal().find("perf_event_open: "), std::string::npos);
    EXPECT_FALSE(counter.stop());
    GTEST_SKIP() << counter.refusal();
  }
  constexpr std::size_t bytes = std::size_t{256} << 20;  // beyond the reach of any TLB
  const PageBlock block = page_block("small", bytes);
  const PointerChase chase(block.data(), bytes, 1);
  counter.start();
  chase.go(1);
  const auto misses = counter.stop();
  ASSERT_TRUE(misses);
  EXPECT_GT(*misses, chase.loads() / 4);
}

}  // namespace
}  // namespace ropewalk::bench
