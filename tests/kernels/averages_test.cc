// Averages: sums divided before they are rounded, against loops of one element after the other.
#include <gtest/gtest.h>

#include <vector>

#include "kernels/buffers.hpp"

namespace ropewalk::testing {
namespace {

template <class Real>
Real average_of(const std::vector<Buffer>& inputs, std::size_t i, double divisor) {
  Real sum = 0;
  for (std::size_t k = 0; k < inputs.size(); ++k) {
    Real value;
    std::memcpy(&value, inputs[k].data() + i * sizeof(Real), sizeof value);
    sum = k == 0 ? value : sum + value;
  }
  return sum / static_cast<Real>(divisor);
}

template <class Real>
void expect_real(const std::byte* found, const std::vector<Buffer>& inputs, std::size_t count,
                 double divisor) {
  for (std::size_t i = 0; i < count; ++i) {
    Real value;
    std::memcpy(&value, found + i * sizeof(Real), sizeof value);
    ASSERT_EQ(value, average_of<Real>(inputs, i, divisor)) << i;
  }
}

void expect_half(ElementType type, const std::byte* found, const std::vector<Buffer>& inputs,
                 std::size_t count, double divisor) {
  for (std::size_t i = 0; i < count; ++i) {
    float sum = 0;
    for (std::size_t k = 0; k < inputs.size(); ++k) {
      std::uint16_t half;
      std::memcpy(&half, inputs[k].data() + 2 * i, sizeof half);
      const auto value = static_cast<float>(value_of(type, half));
      sum = k == 0 ? value : sum + value;
    }
    std::uint16_t half;
    std::memcpy(&half, found + 2 * i, sizeof half);
    ASSERT_EQ(half, nearest(type, sum / static_cast<float>(divisor))) << i;
  }
}

void expect_average(ElementType type, const std::byte* found, const std::vector<Buffer>& inputs,
                    std::size_t count, double divisor) {
  switch (type) {
    case ElementType::float32:
      return expect_real<float>(found, inputs, count, divisor);
    case ElementType::complex_float32:
      return expect_real<float>(found, inputs, 2 * count, divisor);
    case ElementType::float64:
      return expect_real<double>(found, inputs, count, divisor);
    case ElementType::complex_float64:
      return expect_real<double>(found, inputs, 2 * count, divisor);
    case ElementType::long_double:
      return expect_real<long double>(found, inputs, count, divisor);
    case ElementType::complex_long_double:
      return expect_real<long double>(found, inputs, 2 * count, divisor);
    default:
      return expect_half(type, found, inputs, count, divisor);
  }
}

class Averages : public ::testing::TestWithParam<ElementType> {
 protected:
  static std::vector<Buffer> make_inputs(int number, std::size_t count, std::size_t offset) {
    std::vector<Buffer> inputs;
    for (int k = 0; k < number; ++k) {
      inputs.emplace_back(count * size_of(GetParam()), offset);
      fill(GetParam(), Values::ordinary, static_cast<std::uint64_t>(k) + 1, inputs.back().data(),
           count);
    }
    return inputs;
  }

  static void check(InstructionSet set, int input_count, int output_count, std::size_t count,
                    kernels::Stores stores, bool in_place) {
    std::vector<Buffer> inputs = make_inputs(input_count, count, size_of(GetParam()));
    const std::vector<Buffer> before = inputs;
    std::vector<Buffer> others(static_cast<std::size_t>(output_count),
                               Buffer(count * size_of(GetParam()), size_of(GetParam())));
    std::vector<const void*> from;
    std::vector<void*> to;
    for (Buffer& input : inputs) from.push_back(input.data());
    for (Buffer& output : others) to.push_back(output.data());
    if (in_place) to[0] = inputs[0].data();
    const double divisor = 3;
    kernels::find_average(GetParam(), set)(to.data(), output_count, from.data(), input_count, count,
                                           divisor, stores);
    for (void* output : to) {
      expect_average(GetParam(), static_cast<const std::byte*>(output), before, count, divisor);
    }
  }
};

TEST_P(Averages, AreSumsDividedBeforeTheyAreRounded) {
  for (const InstructionSet set : available_sets()) {
    for (const int inputs : {1, 2, 3, 4, 5, 9}) {
      for (const int outputs : {1, 2, 3}) {
        for (const std::size_t count : {1, 7, 64, 1500}) {
          check(set, inputs, outputs, count, kernels::Stores::temporal, false);
          check(set, inputs, outputs, count, kernels::Stores::streaming, true);
          if (HasFatalFailure()) FAIL() << inputs << " to " << outputs << ", " << name(set);
        }
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(Types, Averages,
                         ::testing::Values(ElementType::float16, ElementType::bfloat16,
                                           ElementType::float32, ElementType::float64,
                                           ElementType::long_double, ElementType::complex_float32,
                                           ElementType::complex_float64,
                                           ElementType::complex_long_double),
                         [](const auto& tested) { return std::string(name(tested.param)); });

TEST(AveragesOfHalves, DoNotOverflowWhereTheSumWould) {
  const std::uint16_t large = nearest(ElementType::float16, 60000);
  std::uint16_t result = 0;
  void* output = &result;
  const void* inputs[] = {&large, &large};
  kernels::find_average(ElementType::float16)(&output, 1, inputs, 2, 1, 2,
                                              kernels::Stores::temporal);
  EXPECT_EQ(result, large);
}

TEST(AveragesArguments, OtherTypesHaveNone) {
  for (int i = 0; i < element_type_count; ++i) {
    const auto type = static_cast<ElementType>(i);
    EXPECT_EQ(kernels::find_average(type) != nullptr, is_floating(type) || is_complex(type))
        << name(type);
  }
}

}  // namespace
}  // namespace ropewalk::testing
