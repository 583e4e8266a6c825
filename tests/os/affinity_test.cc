#include "os/affinity.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <cerrno>
#include <thread>

namespace ropewalk::os {
namespace {

using Cpus = std::vector<int>;

TEST(CpuList, IsReadAsSysfsWritesIt) {
  EXPECT_EQ(parse_cpu_list("0-3,8,10-11"), (Cpus{0, 1, 2, 3, 8, 10, 11}));
  EXPECT_EQ(parse_cpu_list("5\n"), (Cpus{5}));
  EXPECT_EQ(parse_cpu_list(""), Cpus{});
  EXPECT_EQ(parse_cpu_list("garbage"), Cpus{});
  EXPECT_EQ(parse_cpu_list("3-1"), Cpus{});
}

TEST(Affinity, OfAThreadCanBeSetAndRead) {
  const Cpus before = thread_cpus();
  ASSERT_FALSE(before.empty());
  std::thread other([&] {
    EXPECT_EQ(set_thread_cpus({before.back()}), 0);
    EXPECT_EQ(thread_cpus(), Cpus{before.back()});
    EXPECT_EQ(current_cpu(), before.back());
    EXPECT_EQ(set_thread_cpus(pthread_self(), before), 0);
    EXPECT_EQ(thread_cpus(), before);
  });
  other.join();
  EXPECT_EQ(thread_cpus(), before) << "another thread's affinity changed";
}

TEST(Affinity, RefusesCpusThatAreNotThere) {
  EXPECT_EQ(set_thread_cpus({}), EINVAL);
  EXPECT_EQ(set_thread_cpus({16383}), EINVAL);
  EXPECT_EQ(set_thread_cpus({-1}), EINVAL);
}

}  // namespace
}  // namespace ropewalk::os
