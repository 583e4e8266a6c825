#include "kernels/strided_copy.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdint>
#include <random>
#include <vector>

namespace ropewalk::kernels {
namespace {

// This is a block inside an array, in a random number of dimensions.
struct Block {
  std::vector<std::size_t> extents;
  std::vector<std::size_t> strides;  // bytes, of the enclosing array
  std::size_t first = 0;
  std::size_t array_bytes = 0;
};

Block random_block(std::mt19937_64& random, const std::vector<std::size_t>& extents,
                   std::size_t element_bytes) {
  Block out{extents, std::vector<std::size_t>(extents.size()), 0, element_bytes};
  for (std::size_t d = extents.size(); d-- > 0;) {
    const std::size_t before = random() % 3 == 0 ? random() % 3 : 0;
    const std::size_t behind = random() % 3 == 0 ? random() % 3 : 0;
    out.strides[d] = out.array_bytes;
    out.first += before * out.strides[d];
    out.array_bytes *= extents[d] + before + behind;
  }
  return out;
}

void copy_naively(const std::vector<std::uint8_t>& source, const Block& from,
                  std::vector<std::uint8_t>& destination, const Block& to,
                  std::size_t element_bytes) {
  std::vector<std::size_t> index(from.extents.size(), 0);
  for (;;) {
    std::size_t s = from.first;
    std::size_t t = to.first;
    for (std::size_t d = 0; d < index.size(); ++d) {
      s += index[d] * from.strides[d];
      t += index[d] * to.strides[d];
    }
    for (std::size_t byte = 0; byte < element_bytes; ++byte) {
      destination[t + byte] = source[s + byte];
    }
    std::size_t d = index.size();
    while (d > 0 && ++index[d - 1] == from.extents[d - 1]) index[--d] = 0;
    if (d == 0) return;
  }
}

TEST(StridedCopy, EqualsElementByElement) {
  std::mt19937_64 random(20170930);
  for (int round = 0; round < 400; ++round) {
    const std::size_t element_bytes = 1 + random() % 40;
    std::vector<std::size_t> extents(random() % 7);
    for (std::size_t& extent : extents) extent = 1 + random() % (extents.size() > 4 ? 3 : 6);
    const Block from = random_block(random, extents, element_bytes);
    const Block to = random_block(random, extents, element_bytes);
    std::vector<std::uint8_t> source(from.array_bytes);
    for (auto& byte : source) byte = static_cast<std::uint8_t>(random());
    std::vector<std::uint8_t> expected(to.array_bytes, 0xee);
    std::vector<std::uint8_t> found = expected;
    copy_naively(source, from, expected, to, element_bytes);
    const StridedCopy copy(source.data() + from.first, found.data() + to.first,
                           {extents, from.strides, to.strides, element_bytes});
    copy.run();
    ASSERT_EQ(found, expected) << "round " << round;
  }
}

// The source's bytes, gaps included, are elsewhere; what lies outside of them is never read.
TEST(StridedCopy, ReadsTheSameFromACopyOfItsSpan) {
  std::mt19937_64 random(20170932);
  for (int round = 0; round < 400; ++round) {
    const std::size_t element_bytes = 1 + random() % 40;
    std::vector<std::size_t> extents(random() % 6);
    for (std::size_t& extent : extents) extent = 1 + random() % 5;
    const Block from = random_block(random, extents, element_bytes);
    const Block to = random_block(random, extents, element_bytes);
    std::vector<std::uint8_t> source(from.array_bytes);
    for (auto& byte : source) byte = static_cast<std::uint8_t>(random());
    std::vector<std::uint8_t> expected(to.array_bytes, 0xee);
    std::vector<std::uint8_t> found = expected;
    copy_naively(source, from, expected, to, element_bytes);
    const StridedCopy copy(source.data() + from.first, found.data() + to.first,
                           {extents, from.strides, to.strides, element_bytes});
    const auto span = copy.source_span();
    ASSERT_EQ(reinterpret_cast<const std::uint8_t*>(span.data()), source.data() + from.first);
    const std::vector<std::byte> elsewhere(span.begin(), span.end());
    copy.from(elsewhere.data()).run();
    ASSERT_EQ(found, expected) << "round " << round;
  }
}

TEST(StridedCopy, HasNoSpanOfNegativeStrides) {
  std::vector<std::uint8_t> memory(8);
  const std::vector<std::size_t> extents{4};
  const std::vector<std::size_t> backwards{~std::size_t{0} - 1};  // -2
  const std::vector<std::size_t> forwards{2};
  const StridedCopy copy(memory.data() + 6, memory.data(), {extents, backwards, forwards, 1});
  EXPECT_TRUE(copy.source_span().empty());
}

TEST(StridedCopy, PartsTogetherDoTheSame) {
  std::mt19937_64 random(20170931);
  for (int round = 0; round < 400; ++round) {
    const std::size_t element_bytes = 1 + random() % 40;
    std::vector<std::size_t> extents(random() % 5);
    for (std::size_t& extent : extents) extent = 1 + random() % 9;
    const Block from = random_block(random, extents, element_bytes);
    const Block to = random_block(random, extents, element_bytes);
    std::vector<std::uint8_t> source(from.array_bytes);
    for (auto& byte : source) byte = static_cast<std::uint8_t>(random());
    std::vector<std::uint8_t> expected(to.array_bytes, 0xee);
    std::vector<std::uint8_t> found = expected;
    const StridedCopy whole(source.data() + from.first, expected.data() + to.first,
                            {extents, from.strides, to.strides, element_bytes});
    whole.run();
    const std::size_t most = 1 + random() % 300;
    std::vector<StridedCopy> parts;
    StridedCopy(source.data() + from.first, found.data() + to.first,
                {extents, from.strides, to.strides, element_bytes})
        .append_parts(most, parts);
    std::size_t bytes = 0;
    for (std::size_t i = parts.size(); i-- > 0;) {  // the order does not matter
      parts[i].run(random() % 2 == 0 ? 0 : SIZE_MAX);
      bytes += parts[i].bytes();
      // Runs are not cut where there are several, and single ones are cut at cache lines.
      EXPECT_LE(parts[i].bytes(), std::max({most, whole.run_bytes(), std::size_t{64}}));
    }
    ASSERT_EQ(found, expected) << "round " << round;
    ASSERT_EQ(bytes, whole.bytes());
  }
}

TEST(StridedCopy, MergesDenseDimensions) {
  std::vector<std::uint8_t> bytes(4 * 5 * 6 * 8);
  const std::vector<std::size_t> extents{2, 5, 6};
  const std::vector<std::size_t> dense{240, 48, 8};
  const StridedCopy whole(bytes.data(), bytes.data() + 480, {extents, dense, dense, 8});
  EXPECT_TRUE(whole.contiguous());
  EXPECT_EQ(whole.bytes(), 480U);
  EXPECT_EQ(whole.run_bytes(), 480U);
  const std::vector<std::size_t> padded{480, 48, 8};
  const StridedCopy planes(bytes.data(), bytes.data(), {extents, padded, dense, 8});
  EXPECT_FALSE(planes.contiguous());
  EXPECT_EQ(planes.run_bytes(), 240U);
}

}  // namespace
}  // namespace ropewalk::kernels
