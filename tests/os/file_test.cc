// Tests descriptors, small files, error texts, the clock, the identity of a node.
#include "os/file.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

#include "os/clock.hpp"
#include "os/node_identity.hpp"

namespace ropewalk::os {
namespace {

bool is_open(int descriptor) { return fcntl(descriptor, F_GETFD) != -1; }

TEST(Descriptor, ClosesWhatItOwnsOnce) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  {
    Descriptor first(ends[0]);
    Descriptor second(std::move(first));
    EXPECT_FALSE(first);
    EXPECT_EQ(second.get(), ends[0]);
    second = Descriptor(ends[1]);
    EXPECT_FALSE(is_open(ends[0]));
    EXPECT_TRUE(is_open(ends[1]));
  }
  EXPECT_FALSE(is_open(ends[1]));
}

TEST(Descriptor, KeepsErrnoWhenItCloses) {
  errno = EDOM;
  { Descriptor file(open("/dev/null", O_RDONLY | O_CLOEXEC)); }
  EXPECT_EQ(errno, EDOM);
}

TEST(ReadText, GivesNothingForWhatCannotBeRead) {
  EXPECT_FALSE(read_text("/proc/no-such-file"));
  EXPECT_FALSE(read_text("/proc"));
  EXPECT_FALSE(read_number("/proc/self/comm"));
}

TEST(ReadText, ReadsFilesOfProcWhole) {
  const auto pid = read_number("/proc/self/stat");
  ASSERT_TRUE(pid);
  EXPECT_EQ(*pid, static_cast<std::uint64_t>(getpid()));
  const auto maps = read_text("/proc/self/maps");  // longer than one read
  ASSERT_TRUE(maps);
  EXPECT_NE(maps->find("[stack]"), std::string::npos);
}

TEST(ErrorText, NamesTheSymbol) {
  EXPECT_NE(error_text(ENOMEM).find("(ENOMEM)"), std::string::npos);
  EXPECT_EQ(error_text(99999), "errno 99999");
  EXPECT_EQ(system_error("here", EPERM).code(), ErrorCode::system);
}

TEST(Clock, GoesForward) {
  const auto before = steady_ns();
  EXPECT_GE(steady_ns(), before);
  EXPECT_GT(before, 0);
}

TEST(NodeIdentity, IsTheSameInAChildAndNamesBootAndNamespaces) {
  const std::string here = node_identity();
  EXPECT_NE(here.find("pid:["), std::string::npos);
  EXPECT_NE(here.find("net:["), std::string::npos);
  EXPECT_EQ(here.find(read_text("/proc/sys/kernel/random/boot_id").value_or("unknown")), 0u);
  const pid_t child = fork();
  if (child == 0) _exit(node_identity() == here ? 0 : 1);
  int status = -1;
  ASSERT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
}

}  // namespace
}  // namespace ropewalk::os
