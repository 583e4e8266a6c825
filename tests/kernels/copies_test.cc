// Copies: every small size and alignment, large ones, several outputs; and the choice of the
// instruction set.
#include <gtest/gtest.h>

#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <random>
#include <vector>

#include "kernels/buffers.hpp"
#include "kernels/kernels.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::testing {
namespace {

using kernels::Stores;

void check_copy(std::size_t bytes, std::size_t from_offset, std::size_t to_offset, int outputs,
                Stores stores) {
  Buffer from(bytes, from_offset);
  std::mt19937 random(static_cast<unsigned>(bytes));
  for (std::size_t i = 0; i < bytes; ++i) from.data()[i] = static_cast<std::byte>(random());
  std::vector<Buffer> to;
  std::vector<void*> pointers;
  for (int j = 0; j < outputs; ++j) {
    to.emplace_back(bytes, (to_offset + static_cast<std::size_t>(5 * j)) % 64);
    to.back().paint();
  }
  for (Buffer& buffer : to) pointers.push_back(buffer.data());
  if (outputs == 1)
    kernels::copy(pointers[0], from.data(), bytes, stores);
  else
    kernels::copy(pointers.data(), outputs, from.data(), bytes, stores);
  for (const Buffer& buffer : to) {
    ASSERT_TRUE(bytes == 0 || std::memcmp(buffer.data(), from.data(), bytes) == 0)
        << bytes << " bytes";
    ASSERT_TRUE(buffer.guarded()) << bytes << " bytes";
  }
}

TEST(Copy, EverySmallSizeAndAlignment) {
  for (const Stores stores : {Stores::temporal, Stores::streaming})
    for (std::size_t bytes = 0; bytes <= 330; bytes += bytes < 70 ? 1 : 13)
      for (const std::size_t offset : {0, 1, 16, 33, 63}) {
        check_copy(bytes, 0, offset, 1, stores);
        check_copy(bytes, offset, 8, 3, stores);
      }
}

TEST(Copy, LargerThanItsPieces) {
  for (const Stores stores : {Stores::temporal, Stores::streaming})
    for (const std::size_t bytes : {4096, 65536, 65537, 200003})
      for (const int outputs : {1, 2, 7}) check_copy(bytes, 3, 17, outputs, stores);
}

// A destination that lies a little behind the source, modulo a page, is written in another way.
TEST(Copy, ToAllPlacesWithinAPage) {
  constexpr std::size_t page = 4096, most = 3 * page;
  std::vector<std::byte> memory(6 * page + 2 * most);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory.data());
  std::byte* const from = memory.data() + (0 - begin) % page + 24;
  std::mt19937 random(4);
  for (std::size_t i = 0; i < most; ++i) from[i] = static_cast<std::byte>(random());
  for (std::size_t bytes : {std::size_t{2047}, std::size_t{2048}, std::size_t{5001}, most})
    for (std::size_t behind = 0; behind <= 130; ++behind) {
      std::byte* const to = from + 4 * page - 64 + behind;
      std::memset(to - 1, 0x5a, bytes + 2);
      kernels::copy(to, from, bytes, Stores::temporal);
      ASSERT_EQ(std::memcmp(to, from, bytes), 0) << bytes << " bytes, " << behind;
      ASSERT_TRUE(to[-1] == std::byte{0x5a} && to[bytes] == std::byte{0x5a}) << behind;
    }
}

TEST(Copy, OntoItselfChangesNothing) {
  for (const Stores stores : {Stores::temporal, Stores::streaming}) {
    Buffer a(5000, 8), b(5000, 24);
    std::memset(a.data(), 1, 5000);
    kernels::copy(a.data(), a.data(), 5000, stores);
    void* outputs[] = {a.data(), b.data()};
    kernels::copy(outputs, 2, a.data(), 5000, stores);
    EXPECT_EQ(std::memcmp(a.data(), b.data(), 5000), 0);
    EXPECT_EQ(a.data()[4999], std::byte{1});
  }
}

TEST(Copy, NothingMayBeNull) {
  for (const Stores stores : {Stores::temporal, Stores::streaming})
    kernels::copy(nullptr, nullptr, 0, stores);
}

TEST(Copy, NoOutputIsAnError) {
  EXPECT_THROW(kernels::copy(nullptr, 0, nullptr, 0, Stores::temporal), Error);
}

// ---- the choice, in a process of its own: it is made once ---------------------------------------

// Exits with the chosen set, or with 100 and the code of the error.
[[noreturn]] void choose(const char* wish) {
  setenv("ROPEWALK_ISA", wish, 1);
  try {
    std::_Exit(static_cast<int>(instruction_set()));
  } catch (const Error& error) {
    std::fputs(error.what(), stderr);
    std::_Exit(100 + static_cast<int>(error.code()));
  }
}

class Choice : public ::testing::Test {
 protected:
  void SetUp() override { GTEST_FLAG_SET(death_test_style, "threadsafe"); }
};
using ChoiceDeathTest = Choice;

TEST_F(ChoiceDeathTest, FollowsTheEnvironment) {
  for (const InstructionSet set : available_sets())
    EXPECT_EXIT(choose(name(set)), ::testing::ExitedWithCode(static_cast<int>(set)), "");
  const auto best = static_cast<int>(available_sets().back());
  EXPECT_EXIT(choose(""), ::testing::ExitedWithCode(best), "");
}

TEST_F(ChoiceDeathTest, RefusesWhatItDoesNotKnow) {
  EXPECT_EXIT(choose("sse9"), ::testing::ExitedWithCode(101), "ROPEWALK_ISA: found \"sse9\"");
}

TEST_F(ChoiceDeathTest, RefusesWhatTheMachineDoesNotHave) {
  if (available(InstructionSet::avx512)) GTEST_SKIP() << "this machine has every instruction set";
  EXPECT_EXIT(choose("avx512"), ::testing::ExitedWithCode(106), "not available");
}

}  // namespace
}  // namespace ropewalk::testing
