// Children of every kind: none shares the parent's live data, and each can go on allocating.
#include <sched.h>
#include <spawn.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include <atomic>
#include <thread>
#include <vector>

#include "blocks.hpp"
#include "memory/child.hpp"

extern char** environ;

namespace ropewalk {
namespace {

TEST(ForkOfMalloc, WritesOnBothSidesStayApart) {
  constexpr std::size_t bytes = 5 * os::mib;
  const test::Block block = test::block_of(bytes);
  test::fill(block.get(), bytes, 1);
  const test::Turn parent_wrote;
  const test::Turn child_wrote;
  const pid_t child = test::start_child([&] {
    parent_wrote.take();
    if (!test::holds(block.get(), bytes, 1)) return 1;
    test::fill(block.get(), bytes, 2);
    const test::Block more = test::block_of(bytes);
    if (!test::is_in_arena(more.get())) return 2;
    test::fill(more.get(), bytes, 3);
    child_wrote.give();
    return test::holds(block.get(), bytes, 2) && test::holds(more.get(), bytes, 3) ? 0 : 3;
  });
  test::fill(block.get(), bytes, 4);
  const test::Block more = test::block_of(bytes);  // perhaps at the address of the child's
  test::fill(more.get(), bytes, 5);
  parent_wrote.give();
  child_wrote.take();
  EXPECT_TRUE(test::holds(block.get(), bytes, 4));
  EXPECT_TRUE(test::holds(more.get(), bytes, 5));
  EXPECT_EQ(test::wait_for(child), 0);
}

TEST(ForkOfMalloc, HolesAreNotCopied) {
  const test::Block sparse = test::block_of(os::gib);
  auto* bytes = static_cast<char*>(sparse.get());
  test::fill(bytes + 512 * os::mib, os::mib, 6);
  EXPECT_EQ(test::in_child([&] {
              if (!test::holds(bytes + 512 * os::mib, os::mib, 6)) return 1;
              return test::arena_resident_bytes() < 256 * os::mib ? 0 : 2;
            }),
            0);
  EXPECT_LT(test::arena_resident_bytes(), 512 * os::mib) << "nor made, in the parent";
}

TEST(ForkOfMalloc, GrandchildrenAndTheirFrees) {
  void* block = std::malloc(os::mib);
  test::fill(block, os::mib, 1);
  EXPECT_EQ(test::in_child([&] {
              block = std::realloc(block, 3 * os::mib);
              test::fill(block, 3 * os::mib, 2);
              const int code = test::in_child([&] {
                if (!test::holds(block, 3 * os::mib, 2)) return 3;
                std::free(block);
                const test::Block zero(std::calloc(3, os::mib));
                return test::is_zero(zero.get(), 3 * os::mib) ? 0 : 4;
              });
              if (code != 0) return code;
              return test::holds(block, 3 * os::mib, 2) ? 0 : 5;
            }),
            0);
  EXPECT_TRUE(test::holds(block, os::mib, 1));
  std::free(block);
}

// Past the handlers of fork: no copy, but no sharing either.
TEST(ForkOfMalloc, ARawCloneCannotReachTheParentsData) {
  const test::Block block = test::block_of(os::mib);
  test::fill(block.get(), os::mib, 1);
  const auto raw = [] { return static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0)); };
  const pid_t writer = raw();
  if (writer == 0) {
    *static_cast<volatile char*>(block.get()) = 'x';
    _exit(0);
  }
  EXPECT_EQ(test::wait_for(writer), 1000 + SIGSEGV);
  EXPECT_TRUE(test::holds(block.get(), os::mib, 1));
  const pid_t user = raw();
  if (user == 0) {
    std::free(block.get());  // of the parent: passed over
    void* own = std::malloc(os::mib);
    test::fill(own, os::mib, 2);
    const bool well = test::holds(own, os::mib, 2);
    _exit(well ? 0 : 1);
  }
  EXPECT_EQ(test::wait_for(user), 0);
  EXPECT_TRUE(test::holds(block.get(), os::mib, 1));
}

TEST(ForkOfMalloc, SpawnAndVfork) {
  const test::Block block = test::block_of(os::mib);
  test::fill(block.get(), os::mib, 1);
  pid_t child = -1;
  char program[] = "/bin/true";
  char* arguments[] = {program, nullptr};
  ASSERT_EQ(posix_spawn(&child, program, nullptr, nullptr, arguments, environ), 0);
  EXPECT_EQ(test::wait_for(child), 0);
  child = vfork();
  if (child == 0) {
    execv(program, arguments);
    _exit(9);
  }
  EXPECT_EQ(test::wait_for(child), 0);
  child = fork();
  if (child == 0) {
    execv(program, arguments);
    _exit(9);
  }
  EXPECT_EQ(test::wait_for(child), 0);
  EXPECT_EQ(system("exit 3"), 3 << 8);
  EXPECT_TRUE(test::holds(block.get(), os::mib, 1));
}

// Threads allocate, free and write while others fork; every child finds its memory whole.
TEST(ForkOfMalloc, AStormUnderLoad) {
  const test::Block kept = test::block_of(os::mib);
  test::fill(kept.get(), os::mib, 1);
  std::atomic<bool> stop{false};
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 3; ++i) {
    threads.emplace_back([&, i] {
      while (!stop.load()) {
        const test::Block block = test::block_of(test::threshold * (i + 1));
        test::fill(block.get(), test::threshold, i);
        if (!test::holds(block.get(), test::threshold, i)) ++wrong;
      }
    });
  }
  const auto storm = [&] {
    for (int i = 0; i < 15; ++i) {
      const int code = test::in_child([&] {
        if (!test::holds(kept.get(), os::mib, 1)) return 1;
        const test::Block own = test::block_of(300000);
        test::fill(own.get(), 300000, 2);
        return test::holds(own.get(), 300000, 2) ? 0 : 2;
      });
      if (code != 0) ++wrong;
    }
  };
  std::thread other(storm);
  storm();
  other.join();
  stop.store(true);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong.load(), 0);
}

}  // namespace
}  // namespace ropewalk
