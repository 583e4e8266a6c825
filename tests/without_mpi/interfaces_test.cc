#include "without_mpi/interfaces.hpp"

#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "ropewalk/error.hpp"

namespace ropewalk::test {
namespace {

os::Address address(unsigned char last) {
  os::Address made = os::loopback_address;
  made.bytes[12] = 10;
  made.bytes[15] = last;
  return made;
}

const std::vector<os::Interface> host{
    {.name = "lo", .address = os::loopback_address, .loopback = true, .megabits_per_s = -1},
    {.name = "eth0", .address = address(1), .loopback = false, .megabits_per_s = 1000},
    {.name = "docker0", .address = address(2), .loopback = false, .megabits_per_s = -1},
    {.name = "ib0", .address = address(3), .loopback = false, .megabits_per_s = 100000},
    {.name = "ib0", .address = address(4), .loopback = false, .megabits_per_s = 100000}};

std::string texts(std::string_view wish) {
  std::string all;
  for (const os::Address& one : without_mpi::addresses_of(host, wish)) all += os::text(one) + " ";
  return all;
}

TEST(Interfaces, TheFastestComesFirstAndLoopbackNever) {
  EXPECT_EQ(texts(""), "10.0.0.3 10.0.0.4 10.0.0.1 10.0.0.2 ");
}

TEST(Interfaces, NamedOnesComeInTheirOrder) {
  EXPECT_EQ(texts("docker0,eth0"), "10.0.0.2 10.0.0.1 ");
  EXPECT_EQ(texts("lo"), "127.0.0.1 ");
}

TEST(Interfaces, AnUnknownOneIsRefusedWithThoseThatExist) {
  try {
    texts("eth0,eth7");
    FAIL() << "expected an error";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("'eth7'"), text.npos) << text;
    EXPECT_NE(text.find("lo, eth0, docker0, ib0"), text.npos) << text;
  }
}

}  // namespace
}  // namespace ropewalk::test
