// Tests pools from a fake sysfs tree; limits from the real machine.
#include "os/hugepool.hpp"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "os/mapping.hpp"

namespace ropewalk::os {
namespace {

class FakeSysfs : public testing::Test {
 protected:
  void SetUp() override {
    std::string pattern = (std::filesystem::temp_directory_path() / "rw-test-XXXXXX").string();
    ASSERT_NE(mkdtemp(pattern.data()), nullptr);
    root_ = pattern;
  }
  void TearDown() override { std::filesystem::remove_all(root_); }
  void put(const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path) << text << '\n';
  }
  std::filesystem::path root_;
};

TEST_F(FakeSysfs, APoolIsReadWhole) {
  const std::string pool = "kernel/mm/hugepages/hugepages-2048kB/";
  put(pool + "nr_hugepages", "10");
  put(pool + "free_hugepages", "7");
  put(pool + "resv_hugepages", "3");
  put(pool + "surplus_hugepages", "2");
  put(pool + "nr_overcommit_hugepages", "5");
  const auto found = read_huge_pool(huge_2m, root_.string());
  ASSERT_TRUE(found);
  EXPECT_EQ(found->page_bytes, huge_2m);
  EXPECT_EQ(found->total, 10u);
  EXPECT_EQ(found->free, 7u);
  EXPECT_EQ(found->reserved, 3u);
  EXPECT_EQ(found->surplus, 2u);
  EXPECT_EQ(found->overcommit, 5u);
  EXPECT_EQ(found->available(), 4u);
  EXPECT_FALSE(read_huge_pool(gib, root_.string())) << "no such pool in this tree";
}

TEST(HugePool, PromisedPagesAreNotAvailable) {
  const HugePool pool{huge_2m, 4, 2, 3, 0, 0};
  EXPECT_EQ(pool.available(), 0u);
}

TEST(MemoryLimit, NamesWhatSetsIt) {
  const MemoryLimit room = available_memory();
  EXPECT_GT(room.bytes, mib);
  EXPECT_FALSE(room.name.empty());
  EXPECT_GE(total_memory_bytes(), mib);
}

}  // namespace
}  // namespace ropewalk::os
