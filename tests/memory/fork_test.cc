// fork: neither side sees what the other writes afterwards.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sched.h>
#include <sys/mman.h>
#include <sys/mount.h>
#include <sys/stat.h>

#include <atomic>
#include <chrono>
#include <mutex>
#include <string>
#include <thread>

#include "child.hpp"
#include "memory/fork_policy.hpp"
#include "os/mapping.hpp"
#include "pattern.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk {
namespace {

using memory::ForkPolicy;

class Fork : public testing::Test {
 protected:
  Fork() { options_.reserve_bytes = 64 * os::mib; }
  void use(ForkPolicy policy) { before_ = memory::set_fork_policy(policy); }
  void TearDown() override { memory::set_fork_policy(before_); }

  MemoryOptions options_;
  ForkPolicy before_ = ForkPolicy::copy;
};

ino_t inode(int descriptor) {
  struct stat state {};
  return fstat(descriptor, &state) == 0 ? state.st_ino : 0;
}

// What other handlers of a fork, or a sanitizer's runtime, do in the child before ours: they map
// memory, and the kernel puts it where there is room. Registered before any arena is made.
void* wanted_by_others = nullptr;
bool taken_by_others = false;
void take_in_child() {
  if (wanted_by_others == nullptr) return;
  const std::size_t page = 4096;
  taken_by_others =
      mmap(wanted_by_others, page, PROT_READ | PROT_WRITE,
           MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0) == wanted_by_others;
}
int registered = -1;
// As early as the library, and linked before it.
__attribute__((constructor(101))) void register_first() {
  registered = pthread_atfork(nullptr, nullptr, take_in_child);
}

TEST_F(Fork, NobodyElseTakesTheAddressesInTheChild) {
  ASSERT_EQ(registered, 0);
  use(ForkPolicy::copy);
  Arena arena(options_);
  void* block = arena.allocate(os::mib);
  test::fill(block, os::mib, 1);
  wanted_by_others = arena.base();
  EXPECT_EQ(test::in_child([&] {
              if (taken_by_others) return 1;
              return test::holds(block, os::mib, 1) ? 0 : 2;
            }),
            0);
  wanted_by_others = nullptr;
}

TEST_F(Fork, CopyKeepsParentAndChildApart) {
  use(ForkPolicy::copy);
  Arena arena(options_);
  constexpr std::size_t bytes = 3 * os::mib + 100;
  void* first = arena.allocate(bytes);
  void* freed = arena.allocate(bytes);
  void* second = arena.allocate(1000);
  arena.deallocate(freed);
  test::fill(first, bytes, 1);
  test::fill(second, 1000, 2);
  const ino_t memfd = inode(arena.descriptor());
  const test::Turn parent_wrote;
  const test::Turn child_wrote;
  const pid_t child = test::start_child([&] {
    if (inode(arena.descriptor()) == memfd) return 1;
    parent_wrote.take();
    if (!test::holds(first, bytes, 1) || !test::holds(second, 1000, 2)) return 2;
    test::fill(first, bytes, 10);
    void* third = arena.allocate(2 * os::mib);
    test::fill(third, 2 * os::mib, 11);
    if (!test::holds(first, bytes, 10) || !test::holds(second, 1000, 2)) return 3;
    // What peers of the child would map is the child's.
    const os::Mapping view = os::map_shared(arena.descriptor(), arena.committed_bytes());
    if (!view || !test::holds(view.data() + arena.offset(first), bytes, 10)) return 4;
    arena.deallocate(first);
    arena.trim();
    child_wrote.give();
    return 0;
  });
  test::fill(first, bytes, 20);
  test::fill(second, 1000, 21);
  parent_wrote.give();
  EXPECT_EQ(test::wait_for(child), 0);
  EXPECT_TRUE(test::holds(first, bytes, 20));
  EXPECT_TRUE(test::holds(second, 1000, 21));
  EXPECT_EQ(inode(arena.descriptor()), memfd);
}

TEST_F(Fork, CopyGoesOnToGrandchildren) {
  use(ForkPolicy::copy);
  Arena arena(options_);
  void* block = arena.allocate(100000);
  test::fill(block, 100000, 1);
  EXPECT_EQ(test::in_child([&] {
              test::fill(block, 100000, 2);
              const int code = test::in_child([&] {
                if (!test::holds(block, 100000, 2)) return 5;
                test::fill(block, 100000, 3);
                return 0;
              });
              return code != 0 ? code : test::holds(block, 100000, 2) ? 0 : 6;
            }),
            0);
  EXPECT_TRUE(test::holds(block, 100000, 1));
}

TEST_F(Fork, CopyCoversPageBlocks) {
  use(ForkPolicy::copy);
  const PageBlock block(3 * os::mib);
  test::fill(block.data(), block.bytes(), 1);
  const test::Turn parent_wrote;
  const pid_t child = test::start_child([&] {
    parent_wrote.take();
    if (!test::holds(block.data(), block.bytes(), 1)) return 1;
    test::fill(block.data(), block.bytes(), 2);
    const os::Mapping view = os::map_shared(block.descriptor(), block.mapped_bytes());
    return view && test::holds(view.data(), block.bytes(), 2) ? 0 : 2;
  });
  test::fill(block.data(), block.bytes(), 3);
  parent_wrote.give();
  EXPECT_EQ(test::wait_for(child), 0);
  EXPECT_TRUE(test::holds(block.data(), block.bytes(), 3));
}

TEST_F(Fork, CopyOfAnEmptyArenaIsUsableToo) {
  use(ForkPolicy::copy);
  Arena arena(options_);
  const pid_t child = test::start_child([&] {
    void* block = arena.allocate(5000);
    test::fill(block, 5000, 1);
    return test::holds(block, 5000, 1) ? 0 : 1;
  });
  void* block = arena.allocate(5000);  // perhaps the same address as the child's
  test::fill(block, 5000, 2);
  EXPECT_EQ(test::wait_for(child), 0);
  EXPECT_TRUE(test::holds(block, 5000, 2));
}

// A system call tells what a load would meet, without the signal.
bool is_readable(const void* address) {
  int ends[2];
  if (pipe(ends) != 0) return true;
  const bool readable = write(ends[1], address, 1) == 1;
  close(ends[0]);
  close(ends[1]);
  return readable;
}

TEST_F(Fork, RefuseGivesTheChildNothingOfTheParents) {
  use(ForkPolicy::refuse);
  Arena arena(options_);
  const PageBlock page_block(os::mib);
  auto* block = static_cast<std::byte*>(arena.allocate(100000));
  test::fill(block, 100000, 1);
  const std::size_t committed = arena.committed_bytes();
  const ino_t memfd = inode(arena.descriptor());
  const ino_t block_memfd = inode(page_block.descriptor());
  EXPECT_EQ(test::in_child([&] {
              if (inode(arena.descriptor()) == memfd) return 8;
              if (inode(page_block.descriptor()) == block_memfd) return 9;
              if (is_readable(block) || is_readable(page_block.data())) return 1;
              if (arena.contains(block)) return 2;
              arena.deallocate(block);  // stale, and harmless
              auto* own = static_cast<std::byte*>(arena.allocate(100000));
              test::fill(own, 100000, 2);
              if (!test::holds(own, 100000, 2)) return 3;
              if (own < arena.base() + committed) return 4;
              // This looks at a grandchild, too, of a child whose arena begins later.
              memory::set_fork_policy(ForkPolicy::copy);
              return test::in_child([&] {
                if (!test::holds(own, 100000, 2)) return 5;
                if (is_readable(block)) return 6;
                test::fill(own, 100000, 3);
                return test::holds(own, 100000, 3) ? 0 : 7;
              });
            }),
            0);
  EXPECT_TRUE(test::holds(block, 100000, 1));
}

// In a child: less memory is available than there is. Returns false where that cannot be.
bool see_little_memory() {
  std::string name = "/tmp/ropewalk-meminfo-XXXXXX";
  const os::Descriptor file(mkstemp(name.data()));
  const std::string text = "MemTotal: 4096 kB\nMemAvailable: 1024 kB\n";
  const bool hidden =
      write(file.get(), text.data(), text.size()) == static_cast<ssize_t>(text.size()) &&
      (unshare(CLONE_NEWNS) == 0 || unshare(CLONE_NEWUSER | CLONE_NEWNS) == 0) &&
      mount(nullptr, "/", nullptr, MS_REC | MS_PRIVATE, nullptr) == 0 &&
      mount(name.c_str(), "/proc/meminfo", nullptr, MS_BIND, nullptr) == 0;
  unlink(name.c_str());
  return hidden;
}

TEST_F(Fork, NoPageBlockIsCopiedWhereMemoryIsShort) {
  constexpr int not_here = 77;
  use(ForkPolicy::copy);
  const int code = test::in_child([] {
    const PageBlock block(8 * os::mib);
    if (!see_little_memory()) return not_here;
    return test::in_child([&] { return is_readable(block.data()) ? 1 : 0; });
  });
  if (code == not_here) GTEST_SKIP() << "this user may not mount";
  EXPECT_EQ(code, 0);
}

TEST_F(Fork, WhileOtherThreadsAllocate) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer does not follow a fork of many threads";
#endif
  use(ForkPolicy::copy);
  Arena arena(options_);
  void* kept = arena.allocate(1000);
  test::fill(kept, 1000, 9);
  std::atomic<bool> stop{false};
  std::thread other([&] {
    while (!stop.load()) {
      void* block = arena.allocate(3000);
      test::fill(block, 3000, 4);
      arena.deallocate(block);
    }
  });
  for (int i = 0; i < 5; ++i) {
    EXPECT_EQ(test::in_child([&] {
                void* block = arena.allocate(20000);
                test::fill(block, 20000, 5);
                arena.deallocate(block);
                return test::holds(kept, 1000, 9) ? 0 : 1;
              }),
              0);
  }
  stop.store(true);
  other.join();
}

// A program's own handlers, registered before any arena is made, as libraries do it to lock
// themselves around a fork.
std::mutex of_program;
bool locks_program = false;
void lock_program() {
  if (locks_program) of_program.lock();
}
void unlock_program() {
  if (locks_program) of_program.unlock();
}
const int locking = pthread_atfork(lock_program, unlock_program, unlock_program);

TEST_F(Fork, LocksAfterTheProgramsOwnHandlers) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer does not follow a fork of many threads";
#endif
  ASSERT_EQ(locking, 0);
  const int code = test::in_child([&] {
    alarm(20);  // ends a deadlock
    Arena arena(options_);
    locks_program = true;
    std::atomic<bool> stop{false};
    std::thread other([&] {
      while (!stop.load()) {
        const std::lock_guard lock(of_program);
        arena.deallocate(arena.allocate(1000));
      }
    });
    for (int i = 0; i < 200; ++i) test::in_child([] { return 0; });
    stop.store(true);
    other.join();
    return 0;
  });
  EXPECT_EQ(code, 0);
}

// Forks at a time when another thread makes the arena of the process.
int fork_while_made(int delay_us) {
  std::atomic<bool> begun{false};
  std::thread maker([&] {
    begun.store(true);
    Arena::process();
  });
  while (!begun.load()) {
  }
  const auto from = std::chrono::steady_clock::now();
  while (std::chrono::steady_clock::now() - from < std::chrono::microseconds(delay_us)) {
  }
  const int code = test::in_child([] {
    alarm(10);  // ends a deadlock
    test::fill(Arena::process().allocate(1000), 1000, 1);
    return 0;
  });
  maker.join();
  return code;
}

TEST_F(Fork, WhileTheArenaOfTheProcessIsMade) {
#if defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "the thread sanitizer does not follow a fork of many threads";
#endif
  for (int delay_us = 0; delay_us < 300; delay_us += 10) {
    ASSERT_EQ(test::in_child([&] { return fork_while_made(delay_us); }), 0) << delay_us;
  }
}

}  // namespace
}  // namespace ropewalk
