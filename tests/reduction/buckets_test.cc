// Which tensors are fused: rules, on lists small enough to see.
#include "reduction/buckets.hpp"

#include <gtest/gtest.h>

namespace ropewalk::reduction {
namespace {

constexpr auto f32 = ElementType::float32;
constexpr auto bf16 = ElementType::bfloat16;

TEST(Buckets, SmallTensorsOfATypeShareAVector) {
  const std::vector<PlanTensor> tensors{{10, f32}, {20, f32}, {5, bf16}, {7, f32}};
  const auto buckets = buckets_of(tensors, 4096, 1024);
  ASSERT_EQ(buckets.size(), 2U);
  // Buckets are ordered by their last tensors.
  EXPECT_EQ(buckets[0].type, bf16);
  EXPECT_EQ(buckets[1].type, f32);
  ASSERT_EQ(buckets[1].pieces.size(), 3U);
  EXPECT_EQ(buckets[1].pieces[1].offset, 32U);  // the next multiple of 128 bytes
  EXPECT_EQ(buckets[1].pieces[2].offset, 64U);
  EXPECT_EQ(buckets[1].count, 71U);
  EXPECT_TRUE(buckets[0].fused);
}

TEST(Buckets, AFullOneIsClosed) {
  const std::vector<PlanTensor> tensors(5, PlanTensor{32, f32});  // 128 bytes each
  const auto buckets = buckets_of(tensors, 256, 256);
  ASSERT_EQ(buckets.size(), 3U);
  EXPECT_EQ(buckets[0].pieces.size(), 2U);
  EXPECT_EQ(buckets[2].pieces.size(), 1U);
}

TEST(Buckets, LargeTensorsStayWhereTheyAre) {
  const std::vector<PlanTensor> tensors{{1, f32}, {1000, f32}, {1, f32}};
  const auto buckets = buckets_of(tensors, 1 << 20, 256);
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_FALSE(buckets[0].fused);
  EXPECT_EQ(buckets[0].pieces[0].tensor, 1);
  EXPECT_EQ(buckets[1].pieces.size(), 2U);  // those around it
}

TEST(Buckets, ATensorOfTheLimitIsFusedAndOneAboveIsNot) {
  const std::vector<PlanTensor> tensors{{64, f32}, {64, f32}, {65, f32}};
  const auto buckets = buckets_of(tensors, 4096, 256);
  ASSERT_EQ(buckets.size(), 2U);
  EXPECT_EQ(buckets[0].pieces.size(), 2U);
  EXPECT_FALSE(buckets[1].fused);
  EXPECT_FALSE(buckets_of(tensors, 255, 4096)[0].fused);  // it would fit no bucket
}

TEST(Buckets, NothingIsFusedUpToZeroBytes) {
  const std::vector<PlanTensor> tensors{{1, f32}, {0, f32}, {1, f32}};
  EXPECT_EQ(buckets_of(tensors, 4096, 0).size(), 3U);
  EXPECT_TRUE(buckets_of({}, 4096, 0).empty());
}

TEST(Buckets, WhatCannotBeIsRefused) {
  const std::vector<PlanTensor> too_many{{~std::size_t{0} / 2, f32}};
  EXPECT_THROW(buckets_of(too_many, 4096, 64), Error);
  const std::vector<PlanTensor> no_type{{1, static_cast<ElementType>(99)}};
  EXPECT_THROW(buckets_of(no_type, 4096, 64), Error);
}

}  // namespace
}  // namespace ropewalk::reduction
