// XPMEM itself where the machine has it, and its absence where it has not.
#include "channel/xpmem.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>

namespace ropewalk::channel {
namespace {

TEST(Xpmem, AMissingDeviceIsAReasonAndNoError) {
  const auto provider = make_xpmem("/nonexistent/xpmem");
  std::string reason;
  EXPECT_EQ(provider->own_segment(reason), 0);
  EXPECT_NE(reason.find("/nonexistent/xpmem"), std::string::npos) << reason;
  EXPECT_NE(reason.find("ENOENT"), std::string::npos) << reason;
  EXPECT_FALSE(provider->open(1));
  EXPECT_EQ(provider->attach(1, 0, 4096), nullptr);
}

TEST(Xpmem, AnotherDeviceIsNotTakenForIt) {
  const auto provider = make_xpmem("/dev/null");
  std::string reason;
  EXPECT_EQ(provider->own_segment(reason), 0);
  EXPECT_NE(reason.find("/dev/null"), std::string::npos) << reason;
}

TEST(Xpmem, AttachesMemoryOfAnotherProcessAndFollowsItsRemapping) {
  const auto provider = make_xpmem();
  std::string reason;
  if (provider->own_segment(reason) == 0) GTEST_SKIP() << reason;
  const auto bytes = static_cast<std::size_t>(4 * sysconf(_SC_PAGESIZE));
  int to_parent[2];
  int to_child[2];
  ASSERT_EQ(pipe(to_parent) | pipe(to_child), 0);
  struct Offer {
    Segment segment;
    std::uint64_t address;
  };
  const pid_t child = fork();
  if (child == 0) {
    const auto own = make_xpmem();
    std::string why;
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    std::memset(memory, 1, bytes);
    const Offer offer{own->own_segment(why), reinterpret_cast<std::uintptr_t>(memory)};
    bool good = write(to_parent[1], &offer, sizeof offer) == sizeof offer;
    char word = 0;
    good = good && read(to_child[0], &word, 1) == 1;
    good = good && static_cast<char*>(memory)[bytes - 1] == 5;  // written by the parent
    mmap(memory, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
    std::memset(memory, 2, bytes);
    good = good && write(to_parent[1], &word, 1) == 1 && read(to_child[0], &word, 1) == 1;
    _exit(good ? 0 : 1);
  }
  Offer offer{};
  ASSERT_EQ(read(to_parent[0], &offer, sizeof offer), static_cast<ssize_t>(sizeof offer));
  ASSERT_TRUE(provider->open(offer.segment));
  std::byte* local = provider->attach(offer.segment, offer.address, bytes);
  ASSERT_NE(local, nullptr);
  EXPECT_EQ(local[bytes / 2], std::byte{1});
  local[bytes - 1] = std::byte{5};
  char word = 0;
  EXPECT_EQ(write(to_child[1], &word, 1), 1);
  EXPECT_EQ(read(to_parent[0], &word, 1), 1);
  EXPECT_EQ(local[bytes / 2], std::byte{2});
  EXPECT_EQ(write(to_child[1], &word, 1), 1);
  int status = 0;
  waitpid(child, &status, 0);
  EXPECT_EQ(status, 0);
  provider->detach(local, bytes);
  provider->close(offer.segment);
  for (const int end : {to_parent[0], to_parent[1], to_child[0], to_child[1]}) close(end);
}

}  // namespace
}  // namespace ropewalk::channel
