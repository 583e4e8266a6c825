#include "os/mapping.hpp"

#include <gtest/gtest.h>

#include <cerrno>
#include <cstring>

#include "os/memfd.hpp"
#include "os/pagemap.hpp"

namespace ropewalk::os {
namespace {

bool is_mapped(const void* address) { return !mapped_areas(address, 1, false).empty(); }

TEST(Rounding, GoesToMultiples) {
  EXPECT_EQ(round_up(0, 4096), 0u);
  EXPECT_EQ(round_up(1, 4096), 4096u);
  EXPECT_EQ(round_up(4096, 4096), 4096u);
  EXPECT_EQ(round_down(8191, 4096), 4096u);
}

TEST(Mapping, ReservesAlignedAndUnmaps) {
  for (const std::size_t alignment : {page_bytes(), huge_2m, 64 * mib}) {
    std::byte* data = nullptr;
    {
      const Mapping range = reserve_range(3 * mib, alignment);
      ASSERT_TRUE(range);
      data = range.data();
      EXPECT_EQ(reinterpret_cast<std::uintptr_t>(data) % alignment, 0u);
      EXPECT_EQ(range.bytes(), 3 * mib);
      EXPECT_TRUE(is_mapped(data));
      EXPECT_TRUE(is_mapped(data + 3 * mib - 1));
    }
    EXPECT_FALSE(is_mapped(data));
  }
}

TEST(Mapping, OfMoreThanThereIsIsAnError) {
  EXPECT_FALSE(reserve_range(SIZE_MAX, page_bytes()));
  EXPECT_FALSE(reserve_range(std::size_t{1} << 60, page_bytes()));
  EXPECT_FALSE(reserve_range(0, page_bytes()));
}

TEST(Mapping, TwoMapsOfAFileAreOneMemory) {
  const Descriptor file = open_memfd("test", MemfdPages::normal);
  ASSERT_EQ(grow_file(file.get(), 2 * page_bytes()), 0);
  const Mapping first = map_shared(file.get(), 2 * page_bytes());
  const Mapping second = map_shared(file.get(), page_bytes(), page_bytes());
  ASSERT_TRUE(first && second);
  first.data()[page_bytes() + 5] = std::byte{42};
  EXPECT_EQ(second.data()[5], std::byte{42});
}

// Touching the page behind the end of the file would be SIGBUS.
TEST(Populate, BeyondTheFileIsAnErrorAndNoSignal) {
  const Descriptor file = open_memfd("test", MemfdPages::normal);
  ASSERT_EQ(grow_file(file.get(), page_bytes()), 0);
  const Mapping map = map_shared(file.get(), 2 * page_bytes());
  ASSERT_TRUE(map);
  EXPECT_EQ(populate_write(map.data(), page_bytes(), file.get(), 0), 0);
  const int error = populate_write(map.data() + page_bytes(), page_bytes());
  EXPECT_NE(error, 0);
}

TEST(Populate, MakesEveryPagePresentAndKeepsContents) {
  const Descriptor file = open_memfd("test", MemfdPages::normal);
  ASSERT_EQ(grow_file(file.get(), 64 * page_bytes()), 0);
  const Mapping map = map_shared(file.get(), 64 * page_bytes());
  ASSERT_TRUE(map);
  map.data()[10 * page_bytes()] = std::byte{9};
  EXPECT_EQ(summarize_pages(map.data(), map.bytes()).resident_bytes, page_bytes());
  ASSERT_EQ(populate_write(map.data(), map.bytes(), file.get(), 0), 0);
  EXPECT_EQ(map.data()[10 * page_bytes()], std::byte{9});
  EXPECT_EQ(summarize_pages(map.data(), map.bytes()).resident_bytes, map.bytes());
}

TEST(Collapse, PutsTouchedBlocksOnHugePagesAndKeepsContents) {
  const Descriptor file = open_memfd("test", MemfdPages::normal);
  ASSERT_EQ(grow_file(file.get(), 2 * huge_2m), 0);
  const Mapping map = map_shared(file.get(), 2 * huge_2m, 0, huge_2m);
  ASSERT_TRUE(map);
  map.data()[4097] = std::byte{17};
  map.data()[huge_2m] = std::byte{18};
  int error = EAGAIN;
  for (int attempt = 0; attempt < 20 && error != 0; ++attempt) {
    error = collapse(map.data(), map.bytes());
  }
  if (error != 0) GTEST_SKIP() << "no huge pages to be had here: " << error_text(error);
  EXPECT_EQ(summarize_pages(map.data(), map.bytes()).huge_bytes, map.bytes());
  EXPECT_EQ(map.data()[4097], std::byte{17});
  EXPECT_EQ(map.data()[huge_2m], std::byte{18});
  EXPECT_EQ(map.data()[2 * huge_2m - 1], std::byte{0});
}

}  // namespace
}  // namespace ropewalk::os
