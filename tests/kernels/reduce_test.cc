// Every reduction against the scalar reference, bit for bit: types, operations, numbers of inputs
// and outputs, counts, alignments, stores and instruction sets.
#include <gtest/gtest.h>
#include <sys/mman.h>

#include <algorithm>
#include <complex>

#include "kernels/buffers.hpp"
#include "kernels/kernels.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::testing {
namespace {

using kernels::ReduceFunction;
using kernels::Stores;

constexpr int max_inputs = 9;

// Where buffers begin, in bytes past a cache line.
enum class Placement { aligned, element, scattered };
std::size_t offset(Placement placement, ElementType type, int buffer) {
  if (placement == Placement::aligned) return 0;
  if (placement == Placement::element) return size_of(type) % 64;  // outputs alike
  return static_cast<std::size_t>(buffer * 7 + 3) % 64;
}

struct Inputs {
  Inputs(const Case& c, Placement placement, Values values, int input_count) {
    for (int k = 0; k < input_count; ++k) {
      buffers.emplace_back(c.count * size_of(c.type), offset(placement, c.type, k));
      fill(c.type, values, 1000 * c.count + static_cast<std::uint64_t>(k), buffers.back().data(),
           c.count);
    }
    for (const Buffer& buffer : buffers) pointers.push_back(buffer.data());
  }
  const void* const* data() const { return reinterpret_cast<const void* const*>(pointers.data()); }
  std::vector<Buffer> buffers;
  std::vector<const std::byte*> pointers;
};

std::vector<std::byte> expect(const Case& c, const std::vector<const std::byte*>& inputs) {
  std::vector<std::byte> expected(c.count * size_of(c.type), std::byte{0xa5});
  reference(c.type, c.op, inputs, c.count, expected.data());
  return expected;
}

struct Outputs {
  Outputs(const Case& c, Placement placement, int output_count) {
    for (int j = 0; j < output_count; ++j) {
      buffers.emplace_back(c.count * size_of(c.type), offset(placement, c.type, j + max_inputs));
      buffers.back().paint();
    }
    for (Buffer& buffer : buffers) pointers.push_back(buffer.data());
  }
  void* const* data() const { return reinterpret_cast<void* const*>(pointers.data()); }
  std::vector<Buffer> buffers;
  std::vector<std::byte*> pointers;
};

void check(const Case& c, const Inputs& inputs, Placement placement, int output_count,
           InstructionSet set, Stores stores, const std::vector<std::byte>& expected) {
  Outputs outputs(c, placement, output_count);
  const ReduceFunction function = kernels::find(c.type, c.op, set);
  ASSERT_NE(function, nullptr) << describe(c);
  const int input_count = static_cast<int>(inputs.pointers.size());
  function(outputs.data(), output_count, inputs.data(), input_count, c.count, stores);
  for (int j = 0; j < output_count; ++j) {
    const auto which = static_cast<std::size_t>(j);
    const std::string found = difference(c, outputs.pointers[which], expected.data());
    ASSERT_TRUE(found.empty()) << found << "; output " << j << " of " << output_count << ", "
                               << input_count << " inputs, " << name(set)
                               << (stores == Stores::streaming ? ", streaming" : ", temporal")
                               << ", placement " << static_cast<int>(placement);
    ASSERT_TRUE(outputs.buffers[which].guarded()) << "wrote outside: " << describe(c);
  }
}

class Reduce : public ::testing::TestWithParam<ReductionOp> {};

void check_all(const Case& c, Placement placement, Values values, int input_count,
               const std::vector<int>& output_counts) {
  const Inputs inputs(c, placement, values, input_count);
  const std::vector<std::byte> expected = expect(c, inputs.pointers);
  for (const int output_count : output_counts)
    for (const InstructionSet set : available_sets())
      for (const Stores stores : {Stores::temporal, Stores::streaming}) {
        check(c, inputs, placement, output_count, set, stores, expected);
        if (::testing::Test::HasFatalFailure()) return;
      }
}

TEST_P(Reduce, EveryNumberOfInputsAndOutputs) {
  const std::vector<int> all = {1, 2, 3, 4, 5, 6, 7, 8, 9};
  for_each_type(GetParam(), [&](ElementType type) {
    for (int input_count = 2; input_count <= max_inputs; ++input_count)
      for (const std::size_t count : {std::size_t{1}, std::size_t{13}, 160 / size_of(type) + 3})
        for (const Placement placement :
             {Placement::aligned, Placement::element, Placement::scattered}) {
          const Values values = count == 13 ? Values::special : Values::ordinary;
          check_all({type, GetParam(), count}, placement, values, input_count, all);
          if (HasFatalFailure()) return;
        }
  });
}

TEST_P(Reduce, MoreThanABlock) {
  for_each_type(GetParam(), [&](ElementType type) {
    const std::size_t count = 2 * 4096 / size_of(type) + 29;
    for (const int input_count : {2, 3, 4, 5, 8, 9})
      for (const Placement placement :
           {Placement::aligned, Placement::element, Placement::scattered}) {
        check_all({type, GetParam(), count}, placement, Values::ordinary, input_count, {1, 2, 3});
        if (HasFatalFailure()) return;
      }
  });
}

TEST_P(Reduce, EveryCount) {
  for_each_type(GetParam(), [&](ElementType type) {
    for (std::size_t count = 0; count <= 300 / size_of(type) + 2; ++count) {
      check_all({type, GetParam(), count}, Placement::element, Values::ordinary, 2, {1, 2});
      if (HasFatalFailure()) return;
    }
  });
}

TEST_P(Reduce, OneInputIsCopied) {
  for_each_type(GetParam(), [&](ElementType type) {
    const Case c{type, GetParam(), 77};
    const Inputs inputs(c, Placement::element, Values::special, 1);
    const std::vector<std::byte> copy(inputs.pointers[0],
                                      inputs.pointers[0] + c.count * size_of(type));
    for (const InstructionSet set : available_sets())
      for (const int output_count : {1, 2, 5}) {
        check(c, inputs, Placement::element, output_count, set, Stores::temporal, copy);
        check(c, inputs, Placement::element, output_count, set, Stores::streaming, copy);
      }
  });
}

// The send buffers of ranks may be their receive buffers.
TEST_P(Reduce, InPlace) {
  for_each_type(GetParam(), [&](ElementType type) {
    const Case c{type, GetParam(), 4096 / size_of(type) + 37};
    for (const int ranks : {2, 3, 4, 5, 9})
      for (const int output_count : {1, ranks})
        for (const InstructionSet set : available_sets())
          for (const Stores stores : {Stores::temporal, Stores::streaming}) {
            Inputs inputs(c, Placement::element, Values::ordinary, ranks);
            std::vector<std::byte> expected(c.count * size_of(type), std::byte{0x5a});
            reference(type, c.op, inputs.pointers, c.count, expected.data());
            std::vector<void*> outputs;
            for (Buffer& buffer : inputs.buffers) outputs.push_back(buffer.data());
            std::reverse(outputs.begin(), outputs.end());  // one output: the last input
            kernels::find(type, c.op, set)(outputs.data(), output_count, inputs.data(), ranks,
                                           c.count, stores);
            for (int j = 0; j < output_count; ++j) {
              const auto* found =
                  static_cast<const std::byte*>(outputs[static_cast<std::size_t>(j)]);
              ASSERT_EQ(difference(c, found, expected.data()), "")
                  << ranks << " ranks, output " << j;
            }
          }
  });
}

// Some buffers end where memory ends, and some begin where it begins: nothing else is touched.
TEST_P(Reduce, TouchesItsBuffersOnly) {
  constexpr std::size_t page = 4096;
  constexpr int buffers = 5;
  void* region =
      mmap(nullptr, (2 * buffers + 1) * page, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(region, MAP_FAILED);
  auto* base = static_cast<std::byte*>(region);
  const auto room = [&](int i) { return base + (2 * static_cast<std::size_t>(i) + 1) * page; };
  for (int i = 0; i < buffers; ++i) ASSERT_EQ(mprotect(room(i), page, PROT_READ | PROT_WRITE), 0);

  for_each_type(GetParam(), [&](ElementType type) {
    const std::size_t size = size_of(type);
    for (const std::size_t count : {std::size_t{1}, 97 / size + 1, page / size})
      for (const bool at_end : {false, true}) {
        const auto place = [&](int i) { return room(i) + (at_end ? page - count * size : 0); };
        const void* inputs[3] = {place(0), place(1), place(2)};
        void* outputs[2] = {place(3), place(4)};
        for (int i = 0; i < buffers; ++i) fill(type, Values::ordinary, 5, place(i), count);
        for (const InstructionSet set : available_sets())
          for (const Stores stores : {Stores::temporal, Stores::streaming})
            for (const int input_count : {2, 3})
              kernels::find(type, GetParam(), set)(outputs, 2, inputs, input_count, count, stores);
      }
  });
  munmap(region, (2 * buffers + 1) * page);
}

std::vector<ReductionOp> all_operations() {
  std::vector<ReductionOp> all;
  for (int i = 0; i < reduction_op_count; ++i) all.push_back(static_cast<ReductionOp>(i));
  return all;
}
INSTANTIATE_TEST_SUITE_P(Ops, Reduce, ::testing::ValuesIn(all_operations()),
                         [](const auto& tested) { return std::string(name(tested.param)); });

// ---- against higher precision -------------------------------------------------------------------

template <class T>
void sum_within_bounds(ElementType type, double epsilon) {
  const Case c{type, ReductionOp::sum, 1000};
  const int p = 9;
  const Inputs inputs(c, Placement::aligned, Values::ordinary, p);
  std::vector<T> found(c.count);
  void* output = found.data();
  kernels::reduce(&output, 1, inputs.data(), p, c.count, type, c.op, Stores::temporal);
  for (std::size_t i = 0; i < c.count; ++i) {
    long double exact = 0, magnitude = 0;
    for (const std::byte* input : inputs.pointers) {
      T x;
      std::memcpy(&x, input + i * sizeof x, sizeof x);
      exact += static_cast<long double>(x);
      magnitude += std::abs(static_cast<long double>(x));
    }
    // The bound is Higham, Accuracy and Stability of Numerical Algorithms, (4.4).
    ASSERT_LE(std::abs(static_cast<long double>(found[i]) - exact), (p - 1) * epsilon * magnitude);
  }
}

TEST(ReducePrecision, SumsAreWithinTheBoundOfLeftToRightSummation) {
  sum_within_bounds<float>(ElementType::float32, 0x1p-24);
  sum_within_bounds<double>(ElementType::float64, 0x1p-53);
}

TEST(ReducePrecision, HalvesAreRoundedOnce) {
  // 1 + 8 x 2^-9 in bfloat16: rounding after each addition would stay at 1.
  const std::uint16_t one = 0x3f80, small = 0x3b00;
  std::vector<const void*> inputs(9, &small);
  inputs[0] = &one;
  std::uint16_t result = 0;
  void* output = &result;
  kernels::reduce(&output, 1, inputs.data(), 9, 1, ElementType::bfloat16, ReductionOp::sum,
                  Stores::temporal);
  EXPECT_EQ(result, nearest(ElementType::bfloat16, 1 + 8 * 0x1p-9));
  EXPECT_NE(result, one);
}

TEST(ReducePrecision, ComplexProductsAreThoseOfTheStandardLibrary) {
  const Case c{ElementType::complex_float64, ReductionOp::prod, 500};
  const Inputs inputs(c, Placement::aligned, Values::ordinary, 3);
  std::vector<std::complex<double>> found(c.count);
  void* output = found.data();
  kernels::reduce(&output, 1, inputs.data(), 3, c.count, c.type, c.op, Stores::temporal);
  for (std::size_t i = 0; i < c.count; ++i) {
    std::complex<long double> exact = 1;
    for (const std::byte* input : inputs.pointers) {
      std::complex<double> x;
      std::memcpy(&x, input + i * sizeof x, sizeof x);
      exact *= std::complex<long double>(x);
    }
    ASSERT_LE(std::abs(std::complex<long double>(found[i]) - exact), 8 * 0x1p-53 * std::abs(exact));
  }
}

// ---- arguments ----------------------------------------------------------------------------------

ErrorCode code_of(int outputs, int inputs, ElementType type, ReductionOp op) {
  double a = 1, b = 2, c = 0;
  const void* in[] = {&a, &b};
  void* out[] = {&c};
  try {
    kernels::reduce(out, outputs, in, inputs, 1, type, op, Stores::temporal);
  } catch (const Error& error) {
    return error.code();
  }
  return ErrorCode::internal;
}

TEST(ReduceArguments, WhatMpiForbidsIsAnError) {
  EXPECT_EQ(code_of(1, 2, ElementType::float64, ReductionOp::band), ErrorCode::argument);
  EXPECT_EQ(code_of(1, 2, ElementType::complex_float32, ReductionOp::max), ErrorCode::argument);
  EXPECT_EQ(code_of(0, 2, ElementType::float64, ReductionOp::sum), ErrorCode::argument);
  EXPECT_EQ(code_of(1, 0, ElementType::float64, ReductionOp::sum), ErrorCode::argument);
}

TEST(ReduceArguments, EveryPairThatMpiAllowsHasAKernel) {
  for (int i = 0; i < element_type_count; ++i)
    for (const ReductionOp op : all_operations())
      for (const InstructionSet set : available_sets()) {
        const auto type = static_cast<ElementType>(i);
        EXPECT_EQ(kernels::find(type, op, set) != nullptr, supports(op, type))
            << name(op) << " of " << name(type);
      }
}

}  // namespace
}  // namespace ropewalk::testing
