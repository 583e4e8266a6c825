// Tests XPMEM itself where the machine has it, and otherwise how its absence is reported.
#include "channel/xpmem.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

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

// What the module finds in an argument, and puts there: numbers of its interface, as its header has
// them, and not our declarations of it.
template <class T>
T field(const void* argument, std::size_t offset) {
  T value;
  std::memcpy(&value, static_cast<const std::byte*>(argument) + offset, sizeof value);
  return value;
}
template <class T>
void answer(void* argument, std::size_t offset, T value) {
  std::memcpy(static_cast<std::byte*>(argument) + offset, &value, sizeof value);
}

std::vector<std::string> asked;

int module(int, unsigned long command, void* argument) {
  const auto words = [&](std::initializer_list<std::uint64_t> values) {
    std::string text = std::to_string(command & 0xff);
    for (const std::uint64_t value : values) text += " " + std::to_string(value);
    asked.push_back(text);
  };
  EXPECT_EQ(command >> 8, static_cast<unsigned long>('x'));
  switch (command & 0xff) {
    case 0:
      words({});
      return 0x27004;
    case 1:
      EXPECT_EQ(field<std::uint64_t>(argument, 8), ~std::uint64_t{0});  // bytes
      words({field<std::uint64_t>(argument, 0), field<std::uint32_t>(argument, 16),
             field<std::uint64_t>(argument, 24)});
      answer<std::int64_t>(argument, 32, 77);
      return 0;
    case 3:
      words({field<std::uint64_t>(argument, 0), field<std::uint32_t>(argument, 8),
             field<std::uint32_t>(argument, 12), field<std::uint64_t>(argument, 16)});
      answer<std::int64_t>(argument, 24, 1000 + field<std::int64_t>(argument, 0));
      return 0;
    case 5:
      words({field<std::uint64_t>(argument, 0), field<std::uint64_t>(argument, 8),
             field<std::uint64_t>(argument, 16), field<std::uint64_t>(argument, 24)});
      answer<std::uint64_t>(argument, 24, 0x7000);
      return field<std::uint64_t>(argument, 8) == 0xbad000 ? -1 : 0;
    default:  // release and detach
      words({field<std::uint64_t>(argument, 0)});
      return 0;
  }
}

TEST(Xpmem, SaysWhatTheModuleUnderstands) {
  asked.clear();
  const auto provider = make_xpmem("/dev/null", module);
  std::string reason;
  EXPECT_EQ(provider->own_segment(reason), 77);
  EXPECT_EQ(provider->own_segment(reason), 77);  // offered once
  EXPECT_EQ(reason, "");
  EXPECT_EQ(provider->attach(5, 0x10000, 0x2000), nullptr);  // not open
  ASSERT_TRUE(provider->open(5));
  std::byte* local = provider->attach(5, 0x10000, 0x2000);
  EXPECT_EQ(reinterpret_cast<std::uintptr_t>(local), 0x7000U);
  EXPECT_EQ(provider->attach(5, 0xbad000, 0x1000), nullptr);
  provider->detach(local, 0x2000);
  provider->close(5);
  const std::vector<std::string> expected = {"0",
                                             "1 0 1 384",            // mode 0600
                                             "3 5 2 1 0",            // to read and write
                                             "5 1005 65536 8192 0",  // anywhere
                                             "5 1005 12242944 4096 0",
                                             "6 28672",
                                             "4 1005"};
  EXPECT_EQ(asked, expected);
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
