// Tests float16 and bfloat16: every one of the 65536 values.
#include <gtest/gtest.h>

#include <numeric>

#include "kernels/buffers.hpp"
#include "kernels/kernels.hpp"

namespace ropewalk::testing {
namespace {

using kernels::Stores;

constexpr std::size_t all = 65536;

class Halves : public ::testing::TestWithParam<ElementType> {
 protected:
  static std::vector<std::uint16_t> every_value() {
    std::vector<std::uint16_t> values(all);
    std::iota(values.begin(), values.end(), std::uint16_t{0});
    return values;
  }
  static std::vector<std::uint16_t> combine(ReductionOp op, const std::vector<std::uint16_t>& a,
                                            const std::vector<std::uint16_t>& b,
                                            InstructionSet set) {
    std::vector<std::uint16_t> result(all);
    void* output = result.data();
    const void* inputs[] = {a.data(), b.data()};
    kernels::find(GetParam(), op, set)(&output, 1, inputs, 2, all, Stores::temporal);
    return result;
  }
};

// x op x selects x: widened and narrowed, nothing is lost. NaNs become quiet and keep the rest.
TEST_P(Halves, SurviveTheWayThroughFloat) {
  const std::vector<std::uint16_t> values = every_value();
  const int quiet = GetParam() == ElementType::float16 ? 0x0200 : 0x0040;
  for (const InstructionSet set : available_sets()) {
    const auto found = combine(ReductionOp::max, values, values, set);
    for (std::size_t i = 0; i < all; ++i) {
      const int expected = is_nan(GetParam(), values[i]) ? values[i] | quiet : values[i];
      ASSERT_EQ(found[i], expected) << i << ", " << name(set);
    }
  }
}

// Each value meets partners that make sums and products round, overflow, underflow and cancel.
TEST_P(Halves, SumsAndProductsAreRoundedToNearestEven) {
  const std::vector<std::uint16_t> values = every_value();
  std::vector<std::uint16_t> partner(all);
  for (const double y : {0.0, 1.0, -1.0, 0x1p-3, 1.5, -0x1.8p-10, 0x1p-14, 0x1.ap-20, 3e4, 0.7}) {
    const std::uint16_t half = nearest(GetParam(), y);
    std::fill(partner.begin(), partner.end(), half);
    const auto b = static_cast<float>(value_of(GetParam(), half));
    for (const ReductionOp op : {ReductionOp::sum, ReductionOp::prod})
      for (const InstructionSet set : available_sets()) {
        const auto found = combine(op, values, partner, set);
        for (std::size_t i = 0; i < all; ++i) {
          if (is_nan(GetParam(), values[i])) {
            ASSERT_TRUE(is_nan(GetParam(), found[i])) << i;
            continue;
          }
          const auto a = static_cast<float>(value_of(GetParam(), values[i]));
          const float exact = op == ReductionOp::sum ? a + b : a * b;
          if (exact != exact) {
            ASSERT_TRUE(is_nan(GetParam(), found[i])) << i;
          } else {
            ASSERT_EQ(found[i], nearest(GetParam(), exact))
                << a << " and " << b << ", " << name(op) << ", " << name(set);
          }
        }
      }
  }
}

TEST_P(Halves, TheReferenceIsItsOwnInverse) {
  for (const std::uint16_t half : every_value()) {
    if (is_nan(GetParam(), half)) continue;
    ASSERT_EQ(nearest(GetParam(), value_of(GetParam(), half)), half);
  }
  if (GetParam() == ElementType::float16) {
    EXPECT_EQ(value_of(GetParam(), 0x7bff), 65504.0);  // IEEE 754-2019, table 3.5
    EXPECT_EQ(value_of(GetParam(), 0x0001), 0x1p-24);
    EXPECT_EQ(nearest(GetParam(), 65520.0), 0x7c00);
  } else {
    EXPECT_EQ(value_of(GetParam(), 0x3f81), 1.0078125);
    EXPECT_EQ(value_of(GetParam(), 0x0001), 0x1p-133);
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Halves,
                         ::testing::Values(ElementType::float16, ElementType::bfloat16),
                         [](const auto& tested) { return std::string(name(tested.param)); });

}  // namespace
}  // namespace ropewalk::testing
