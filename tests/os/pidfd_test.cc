#include "os/pidfd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>

namespace ropewalk::os {
namespace {

// A child that lives until its `release` end is closed.
struct Child {
  pid_t pid;
  Descriptor release;
};
Child start_child() {
  int ends[2];
  if (pipe(ends) != 0) return {-1, Descriptor()};
  const pid_t pid = fork();
  if (pid == 0) {
    close(ends[1]);
    char byte;
    _exit(read(ends[0], &byte, 1) == 0 ? 0 : 1);
  }
  close(ends[0]);
  return {pid, Descriptor(ends[1])};
}

TEST(Pidfd, TellsTheDeadFromTheLiving) {
  Child child = start_child();
  const Descriptor process = open_pidfd(child.pid);
  if (!process && errno == ENOSYS) GTEST_SKIP() << "no pidfd_open in this kernel or sandbox";
  ASSERT_TRUE(process);
  EXPECT_FALSE(is_dead(process));
  child.release.reset();
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED | WNOWAIT), 0);
  EXPECT_TRUE(is_dead(process)) << "a zombie is dead, too";
  EXPECT_EQ(waitpid(child.pid, nullptr, 0), child.pid);
  EXPECT_TRUE(is_dead(process));
}

TEST(Pidfd, OfNobodyIsAnError) {
  const pid_t gone = fork();
  if (gone == 0) _exit(0);
  ASSERT_EQ(waitpid(gone, nullptr, 0), gone);
  const Descriptor process = open_pidfd(gone);
  if (!process) {
    EXPECT_TRUE(errno == ESRCH || errno == ENOSYS);
  }
}

TEST(Pidfd, TakesADescriptorOfAnotherProcess) {
  int ends[2];
  ASSERT_EQ(pipe(ends), 0);
  Child child = start_child();  // has both ends under the same numbers
  close(ends[0]);
  const Descriptor process = open_pidfd(child.pid);
  const Descriptor taken = take_descriptor(process, ends[0]);
  if (!taken) GTEST_SKIP() << "not allowed here: " << error_text(errno);
  ASSERT_EQ(write(ends[1], "x", 1), 1);
  char byte = 0;
  EXPECT_EQ(read(taken.get(), &byte, 1), 1);
  EXPECT_EQ(byte, 'x');
  close(ends[1]);
  child.release.reset();
  EXPECT_EQ(waitpid(child.pid, nullptr, 0), child.pid);
}

}  // namespace
}  // namespace ropewalk::os
