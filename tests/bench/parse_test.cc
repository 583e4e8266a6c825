// Tests words of the command line: what is understood, and what a refusal says.
#include "common/parse.hpp"

#include <gtest/gtest.h>

#include "bench/command_line.hpp"

namespace ropewalk::bench {
namespace {

using Ints = std::vector<int>;

TEST(Parse, Integers) {
  EXPECT_EQ(integers("--L", "4", 1, 256), Ints({4}));
  EXPECT_EQ(integers("--L", "4,8,16", 1, 256), Ints({4, 8, 16}));
  EXPECT_EQ(integers("--L", "4,8,..,32", 1, 256), Ints({4, 8, 12, 16, 20, 24, 28, 32}));
  EXPECT_EQ(integers("--L", "1,3,..,8,20", 1, 256), Ints({1, 3, 5, 7, 20}));
}

TEST(Parse, IntegersRefuse) {
  for (const char* text : {"", "4,", "x", "4x", "0", "257", "-4", "..,8", "4,..,8", "8,4,..,1",
                           "4,8,..", "99999999999999999999"}) {
    const std::string message = refusal_of([&] { integers("--L", text, 1, 256); });
    EXPECT_EQ(message.rfind("--L: ", 0), 0U) << text << ": " << message;
    EXPECT_NE(message.find("4,8"), std::string::npos) << text << ": " << message;
  }
}

TEST(Parse, Bytes) {
  EXPECT_EQ(bytes("--sizes", "100"), 100U);
  EXPECT_EQ(bytes("--sizes", "64K"), 65536U);
  EXPECT_EQ(bytes("--sizes", "2M"), 2097152U);
  EXPECT_EQ(bytes("--sizes", "3G"), 3221225472U);
  EXPECT_EQ(byte_list("--sizes", "1,2K"), std::vector<std::size_t>({1, 2048}));
}

TEST(Parse, BytesRefuse) {
  for (const char* text : {"", "K", "0", "-1", "1.5M", "2MB", "9999999999999G"}) {
    const std::string message = refusal_of([&] { bytes("--sizes", text); });
    EXPECT_NE(message.find("--sizes: "), std::string::npos) << text << ": " << message;
    EXPECT_NE(message.find("64K"), std::string::npos) << text << ": " << message;
  }
}

TEST(Parse, Extents) {
  EXPECT_EQ(extents("--mpi-grid", "1.1.1.2", 4), Ints({1, 1, 1, 2}));
  EXPECT_EQ(extents("--mpi-grid", "3.2", 0), Ints({3, 2}));
  for (const char* text : {"1.1.2", "1.1.1.0", "1.1.1.", "a.1.1.1", "1x1x1x2"}) {
    const std::string message = refusal_of([&] { extents("--mpi-grid", text, 4); });
    EXPECT_NE(message.find("1.1.1.2"), std::string::npos) << message;
  }
}

TEST(Parse, Times) {
  EXPECT_DOUBLE_EQ(seconds("--time", "90"), 90);
  EXPECT_DOUBLE_EQ(seconds("--time", "0.5s"), 0.5);
  EXPECT_DOUBLE_EQ(seconds("--time", "1.5m"), 90);
  for (const char* text : {"", "s", "0", "-1", "5h", "1 m", "nan", "inf", "1441m", "90ss"}) {
    const std::string message = refusal_of([&] { seconds("--time", text); });
    EXPECT_NE(message.find("--time 90s"), std::string::npos) << text << ": " << message;
  }
}

TEST(Parse, Words) {
  const std::vector<std::string> known = {"hot", "cold"};
  EXPECT_EQ(words("--buffers", "cold,hot,cold", known), std::vector<std::string>({"cold", "hot"}));
  const std::string message = refusal_of([&] { words("--buffers", "warm", known); });
  EXPECT_NE(message.find("hot,cold"), std::string::npos) << message;
}

TEST(Parse, SizesForPeople) {
  EXPECT_EQ(size_text(100), "100 B");
  EXPECT_EQ(size_text(49152), "48 KiB");
  EXPECT_EQ(size_text(2097152), "2 MiB");
  EXPECT_EQ(size_text(std::size_t{3} << 29), "1.5 GiB");
  EXPECT_EQ(dotted({1, 1, 1, 2}), "1.1.1.2");
}

}  // namespace
}  // namespace ropewalk::bench
