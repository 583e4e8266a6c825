#include <gtest/gtest.h>

#include <cstring>

#include "ropewalk/ropewalk.h"

namespace {

bool names(const char* argument) {
  return std::strncmp(rw_last_error(), argument, std::strlen(argument)) == 0;
}

TEST(CApi, AllocatesInspectsAndFrees) {
  void* block = nullptr;
  ASSERT_EQ(rw_alloc(100000, 0, &block), RW_SUCCESS);
  ASSERT_NE(block, nullptr);
  EXPECT_EQ(reinterpret_cast<uintptr_t>(block) % 128, 0u);
  std::memset(block, 1, 100000);
  rw_inspection found;
  ASSERT_EQ(rw_inspect(block, 100000, &found), RW_SUCCESS);
  EXPECT_EQ(found.bytes, 100000u);
  EXPECT_EQ(found.resident_bytes, 100000u);
  EXPECT_EQ(found.peers_can_map, 1);
  EXPECT_GE(found.alignment, 128u);
  EXPECT_LE(found.huge_bytes, 100000u);
  EXPECT_EQ(rw_free(block), RW_SUCCESS);
  EXPECT_EQ(rw_free(nullptr), RW_SUCCESS);
}

TEST(CApi, ErrorsNameTheArgument) {
  void* block = nullptr;
  EXPECT_EQ(rw_alloc(1, 3, &block), RW_ERROR_ARGUMENT);
  EXPECT_TRUE(names("alignment: ")) << rw_last_error();
  EXPECT_EQ(block, nullptr);
  EXPECT_EQ(rw_alloc(1, 0, nullptr), RW_ERROR_ARGUMENT);
  EXPECT_TRUE(names("out: ")) << rw_last_error();
  EXPECT_EQ(rw_alloc(SIZE_MAX, 0, &block), RW_ERROR_MEMORY);
  int local = 0;
  EXPECT_EQ(rw_free(&local), RW_ERROR_ARGUMENT);
  EXPECT_TRUE(names("address: ")) << rw_last_error();
  rw_inspection found;
  EXPECT_EQ(rw_inspect(nullptr, 1, &found), RW_ERROR_ARGUMENT);
  EXPECT_EQ(rw_inspect(&local, 1, nullptr), RW_ERROR_ARGUMENT);
}

}  // namespace
