#include "os/memfd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>

#include "os/mapping.hpp"

namespace ropewalk::os {
namespace {

TEST(Memfd, GrowsButNeverShrinks) {
  const Descriptor file = open_memfd("test", MemfdPages::normal);
  ASSERT_TRUE(file);
  EXPECT_EQ(grow_file(file.get(), 8192), 0);
  EXPECT_EQ(grow_file(file.get(), 16384), 0);
  EXPECT_EQ(grow_file(file.get(), 8192), EPERM);
  struct stat state {};
  ASSERT_EQ(fstat(file.get(), &state), 0);
  EXPECT_EQ(state.st_size, 16384);
}

TEST(Memfd, TakesNoFurtherSealsFromPeers) {
  const Descriptor file = open_memfd("test", MemfdPages::normal);
  ASSERT_TRUE(file);
  EXPECT_EQ(fcntl(file.get(), F_ADD_SEALS, F_SEAL_WRITE), -1);
  EXPECT_EQ(fcntl(file.get(), F_GET_SEALS) & F_SEAL_SHRINK, F_SEAL_SHRINK);
  EXPECT_EQ(fcntl(file.get(), F_GETFD) & FD_CLOEXEC, FD_CLOEXEC);
}

// ftruncate itself would end the process with SIGXFSZ.
TEST(Memfd, AboveTheFileSizeLimitIsAnErrorAndNoSignal) {
  rlimit before{};
  ASSERT_EQ(getrlimit(RLIMIT_FSIZE, &before), 0);
  rlimit low = before;
  low.rlim_cur = 1 << 20;
  const Descriptor file = open_memfd("test", MemfdPages::normal);
  ASSERT_TRUE(file);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &low), 0);
  const int above = grow_file(file.get(), 2 << 20);
  const int below = grow_file(file.get(), 1 << 20);
  ASSERT_EQ(setrlimit(RLIMIT_FSIZE, &before), 0);
  EXPECT_EQ(above, EFBIG);
  EXPECT_EQ(below, 0);
}

TEST(Memfd, HolesReadAsZero) {
  const Descriptor file = open_memfd("test", MemfdPages::normal);
  ASSERT_TRUE(file);
  ASSERT_EQ(grow_file(file.get(), 4 * page_bytes()), 0);
  const Mapping map = map_shared(file.get(), 4 * page_bytes());
  ASSERT_TRUE(map);
  map.data()[page_bytes()] = std::byte{1};
  map.data()[2 * page_bytes()] = std::byte{2};
  EXPECT_EQ(punch_hole(file.get(), page_bytes(), page_bytes()), 0);
  EXPECT_EQ(map.data()[page_bytes()], std::byte{0});
  EXPECT_EQ(map.data()[2 * page_bytes()], std::byte{2});
}

}  // namespace
}  // namespace ropewalk::os
