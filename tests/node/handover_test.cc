// Tests descriptors handed over through abstract sockets, whose names everybody may read.
#include "node/handover.hpp"

#include <dirent.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <functional>
#include <string>

#include "support/thread_mpi.hpp"

namespace ropewalk::node {
namespace {

// Ranks are threads here.
std::vector<RankFacts> facts_of(int ranks) {
  std::vector<RankFacts> facts(static_cast<std::size_t>(ranks));
  for (RankFacts& rank : facts) rank.process = getpid();
  return facts;
}

os::Descriptor file_of(int rank) {
  os::Descriptor file(memfd_create("handover-test", MFD_CLOEXEC));
  EXPECT_EQ(write(file.get(), &rank, sizeof rank), static_cast<ssize_t>(sizeof rank));
  return file;
}

void expect_files(const std::vector<os::Descriptor>& received, int rank, int ranks) {
  ASSERT_EQ(received.size(), static_cast<std::size_t>(ranks));
  for (int peer = 0; peer < ranks; ++peer) {
    if (peer == rank) continue;
    int content = -1;
    ASSERT_EQ(pread(received[static_cast<std::size_t>(peer)].get(), &content, sizeof content, 0),
              static_cast<ssize_t>(sizeof content));
    EXPECT_EQ(content, peer);
  }
}

// There are twelve ranks: more than the ten datagrams that a socket queues by default, so a rank
// that only sent would block.
TEST(Handover, EveryRankGetsEveryDescriptor) {
  constexpr int ranks = 12;
  test::run_ranks(ranks, [](int rank) {
    const os::Descriptor own = file_of(rank);
    expect_files(swap_descriptors(mpi::comm_world(), own.get(), facts_of(ranks)), rank, ranks);
  });
}

// ---- strangers

int open_descriptors(pid_t process, const std::function<void(const std::string&)>& look = {}) {
  const std::string folder = "/proc/" + std::to_string(process) + "/fd/";
  DIR* files = opendir(folder.c_str());
  if (files == nullptr) return -1;
  int count = 0;
  while (const dirent* entry = readdir(files)) {
    std::array<char, 64> target{};
    if (readlink((folder + entry->d_name).c_str(), target.data(), target.size() - 1) < 0) continue;
    if (look) look(target.data());
    ++count;
  }
  closedir(files);
  return count;
}

// Returns the abstract sockets of a process, as /proc/net/unix tells everybody.
std::vector<std::string> addresses_of(pid_t process) {
  std::string sockets;
  open_descriptors(process, [&](const std::string& target) { sockets += target; });
  std::vector<std::string> found;
  std::FILE* table = std::fopen("/proc/net/unix", "re");
  std::array<char, 256> line{};
  while (table != nullptr && std::fgets(line.data(), line.size(), table) != nullptr) {
    unsigned long inode = 0;
    std::array<char, 108> name{};
    if (std::sscanf(line.data(), "%*s %*s %*s %*s %*s %*s %lu @%107s", &inode, name.data()) == 2 &&
        sockets.find("socket:[" + std::to_string(inode) + "]") != std::string::npos) {
      found.emplace_back(name.data());
    }
  }
  if (table != nullptr) std::fclose(table);
  return found;
}

// Bytes and copies of a descriptor, to whatever kind of socket listens there.
void send_rubbish(const std::string& address, std::size_t bytes, int copies) {
  sockaddr_un name{};
  name.sun_family = AF_UNIX;
  std::memcpy(name.sun_path + 1, address.data(), address.size());
  const auto length = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + address.size());
  const std::vector<char> content(bytes, 7);
  const std::vector<int> descriptors(static_cast<std::size_t>(copies), STDERR_FILENO);
  alignas(cmsghdr) std::array<char, CMSG_SPACE(16 * sizeof(int))> control{};
  iovec data{const_cast<char*>(content.data()), bytes};
  msghdr message{};
  message.msg_iov = &data;
  message.msg_iovlen = 1;
  if (copies > 0) {
    const std::size_t rights = descriptors.size() * sizeof(int);
    message.msg_control = control.data();
    message.msg_controllen = CMSG_SPACE(rights);
    cmsghdr* header = CMSG_FIRSTHDR(&message);
    header->cmsg_level = SOL_SOCKET;
    header->cmsg_type = SCM_RIGHTS;
    header->cmsg_len = CMSG_LEN(rights);
    std::memcpy(CMSG_DATA(header), descriptors.data(), rights);
  }
  for (const int type : {SOCK_DGRAM, SOCK_SEQPACKET}) {
    const os::Descriptor socket(::socket(AF_UNIX, type | SOCK_CLOEXEC | SOCK_NONBLOCK, 0));
    if (connect(socket.get(), reinterpret_cast<sockaddr*>(&name), length) != 0) continue;
    sendmsg(socket.get(), &message, MSG_NOSIGNAL);
  }
}

void attack(pid_t process) {
  for (const std::string& address : addresses_of(process)) {
    for (const std::size_t bytes : {1, 4, 8, 24, 100}) {
      for (const int copies : {0, 1, 3}) send_rubbish(address, bytes, copies);
    }
  }
}

// This is another process, of the same user, that floods as long as it lives.
class Flood {
 public:
  Flood() : parent_(getpid()), process_(fork()) {
    if (process_ != 0) return;
    while (getppid() == parent_) attack(parent_);
    _exit(0);
  }
  ~Flood() {
    kill(process_, SIGKILL);
    waitpid(process_, nullptr, 0);
  }
  Flood(const Flood&) = delete;
  Flood& operator=(const Flood&) = delete;

 private:
  pid_t parent_;
  pid_t process_;
};

// What lies in the queues before the first rank looks there, sent by one of the ranks' processes.
TEST(Handover, RubbishIsPassedOverAndLeavesNothingOpen) {
  constexpr int ranks = 3;
  int before = 0;
  std::atomic<bool> attacked{false};
  test::RunOptions options;
  options.fail = [&](const char* function, int) {
    if (std::strcmp(function, "MPI_Allreduce") == 0 && !attacked.exchange(true)) attack(getpid());
    return 0;
  };
  before = open_descriptors(getpid());
  test::run_ranks(
      ranks,
      [](int rank) {
        const os::Descriptor own = file_of(rank);
        expect_files(swap_descriptors(mpi::comm_world(), own.get(), facts_of(ranks)), rank, ranks);
      },
      options);
  EXPECT_TRUE(attacked);
  EXPECT_EQ(open_descriptors(getpid()), before);
}

TEST(Handover, AFloodOfStrangersHidesNoRank) {
  constexpr int ranks = 4;
  const Flood flood;
  const int before = open_descriptors(getpid());
  for (int round = 0; round < 20; ++round) {
    test::run_ranks(ranks, [](int rank) {
      const os::Descriptor own = file_of(rank);
      expect_files(swap_descriptors(mpi::comm_world(), own.get(), facts_of(ranks)), rank, ranks);
    });
  }
  EXPECT_EQ(open_descriptors(getpid()), before);
}

// A rank that cannot send is missed in time, whatever else comes meanwhile.
TEST(Handover, AFloodOfStrangersDelaysNoEnd) {
  constexpr int patience_ms = 300;
  const Flood flood;
  const int before = open_descriptors(getpid());
  test::run_ranks(3, [](int rank) {
    const os::Descriptor own = rank == 1 ? os::Descriptor() : file_of(rank);
    const auto received = swap_descriptors(mpi::comm_world(), own.get(), facts_of(3), patience_ms);
    EXPECT_TRUE(received.empty());
  });
  EXPECT_EQ(open_descriptors(getpid()), before);
}

}  // namespace
}  // namespace ropewalk::node
