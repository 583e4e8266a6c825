#include "os/pidfd.hpp"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>

namespace ropewalk::os {
namespace {

// This child lives until its `release` end is closed.
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

// Ends it, and leaves a zombie.
void end(Child& child) {
  kill(child.pid, SIGKILL);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid), &info, WEXITED | WNOWAIT), 0);
}

void reap(const Child& child) { EXPECT_EQ(waitpid(child.pid, nullptr, 0), child.pid); }

bool has_pidfds() { return static_cast<bool>(open_pidfd(getpid())); }

// Returns the number that the next descriptor will have.
int next_number() { return Descriptor(dup(STDERR_FILENO)).get(); }

// Looks as often as a waiting rank does in a fifth of a second.
bool ends_in_many_looks(const ProcessWatch& watch) {
  for (int look = 0; look < 200; ++look) {
    if (watch.ended()) return true;
  }
  return false;
}

TEST(ProcessWatch, KnowsAStoppedProcess) {
  if (!has_pidfds()) GTEST_SKIP() << "no pidfd_open in this kernel or sandbox";
  Child child = start_child();
  const ProcessWatch watch(child.pid);
  EXPECT_FALSE(watch.stopped());
  kill(child.pid, SIGSTOP);
  siginfo_t info{};
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid), &info, WSTOPPED), 0);
  EXPECT_TRUE(watch.stopped());
  EXPECT_FALSE(watch.ended());
  kill(child.pid, SIGCONT);
  ASSERT_EQ(waitid(P_PID, static_cast<id_t>(child.pid), &info, WCONTINUED), 0);
  EXPECT_FALSE(watch.stopped());
  end(child);
  EXPECT_FALSE(watch.stopped());
  reap(child);
}

TEST(ProcessWatch, TellsTheDeadFromTheLiving) {
  if (!has_pidfds()) GTEST_SKIP() << "no pidfd_open in this kernel or sandbox";
  Child child = start_child();
  const ProcessWatch watch(child.pid);
  ASSERT_TRUE(watch);
  EXPECT_FALSE(ends_in_many_looks(watch));
  end(child);
  EXPECT_TRUE(watch.ended()) << "a zombie is dead, too";
  reap(child);
  EXPECT_TRUE(ends_in_many_looks(watch));
}

TEST(ProcessWatch, OfNobodyNeverEnds) {
  EXPECT_FALSE(ProcessWatch().ended());
  Child child = start_child();
  end(child);
  reap(child);
  const ProcessWatch watch(child.pid);
  EXPECT_FALSE(watch);
  EXPECT_FALSE(watch.ended());
}

// What the program puts under the number of a watch's descriptor.
struct Taking {
  const char* name;
  Descriptor (*open)();
};
const Taking takings[] = {
    {"nothing", [] { return Descriptor(); }},
    {"a_file_that_is_readable", [] { return Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC)); }},
    {"a_pipe_that_is_silent",
     [] {
       static int ends[2];  // the other end stays open, to the end of this process
       return Descriptor(pipe(ends) == 0 ? ends[0] : -1);
     }},
    {"the_pidfd_of_another", [] { return open_pidfd(getpid()); }}};

class TakenNumber : public testing::TestWithParam<Taking> {};

// The program closes every descriptor that it does not know, and opens something else.
TEST_P(TakenNumber, IsNotBelieved) {
  if (!has_pidfds()) GTEST_SKIP() << "no pidfd_open in this kernel or sandbox";
  Child child = start_child();
  const int number = next_number();
  {
    const ProcessWatch watch(child.pid);
    ASSERT_EQ(fcntl(number, F_GETFD), FD_CLOEXEC) << "the watch has another number";
    close(number);
    const Descriptor taken = GetParam().open();
    ASSERT_TRUE(taken.get() == number || taken.get() < 0);
    EXPECT_FALSE(ends_in_many_looks(watch)) << "it lives";
    end(child);
    EXPECT_TRUE(ends_in_many_looks(watch));
    reap(child);
    EXPECT_TRUE(ends_in_many_looks(watch));
    if (taken) {
      EXPECT_NE(fcntl(number, F_GETFD), -1) << "the program's file was closed";
    }
  }
}

INSTANTIATE_TEST_SUITE_P(By, TakenNumber, testing::ValuesIn(takings),
                         [](const auto& instance) { return instance.param.name; });

TEST(ProcessWatch, LeavesWhatIsNotItsOwnOpen) {
  if (!has_pidfds()) GTEST_SKIP() << "no pidfd_open in this kernel or sandbox";
  const int number = next_number();
  Descriptor taken;
  {
    const ProcessWatch watch(getpid());
    close(number);
    taken = Descriptor(open("/dev/null", O_RDONLY | O_CLOEXEC));
    ASSERT_EQ(taken.get(), number);
  }
  EXPECT_NE(fcntl(number, F_GETFD), -1);
}

TEST(ProcessWatch, StartsOfProcessesTellThemApart) {
  const std::uint64_t own = start_of_process(getpid());
  EXPECT_GT(own, 0u);
  EXPECT_EQ(start_of_process(getpid()), own);
  EXPECT_LE(start_of_process(getppid()), own);
  Child child = start_child();
  EXPECT_GE(start_of_process(child.pid), own);
  end(child);
  reap(child);
  EXPECT_EQ(start_of_process(child.pid), 0u);
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
