// madvise on blocks of malloc: what the kernel does with anonymous memory, the arena must do, too.
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstring>
#include <vector>

#include "blocks.hpp"
#include "memory/child.hpp"
#include "memory/mapping_flags.hpp"

namespace ropewalk {
namespace {

constexpr std::size_t page = 4096;
constexpr std::size_t bytes = 8 * os::mib;

class Advice : public ::testing::Test {
 protected:
  void SetUp() override {
    ASSERT_TRUE(test::is_in_arena(block_.get()));
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(data()) % page, 0u);
    std::memset(data(), 7, bytes);
  }
  std::byte* data() const { return static_cast<std::byte*>(block_.get()); }
  bool holds_seven(std::size_t from, std::size_t to) const {
    for (std::size_t at = from; at < to; ++at) {
      if (data()[at] != std::byte{7}) return false;
    }
    return true;
  }

  test::Block block_ = test::block_of(bytes);
};

TEST_F(Advice, DontNeedZeroesAndGivesBack) {
  const std::size_t before = test::arena_resident_bytes();
  ASSERT_EQ(madvise(data() + 3 * page, 5 * os::mib, MADV_DONTNEED), 0);
  EXPECT_TRUE(test::is_zero(data() + 3 * page, 5 * os::mib));
  EXPECT_TRUE(holds_seven(0, 3 * page));
  EXPECT_TRUE(holds_seven(3 * page + 5 * os::mib, bytes));
  ASSERT_EQ(madvise(data() + 3 * page, 5 * os::mib, MADV_DONTNEED), 0);
  EXPECT_LE(test::arena_resident_bytes() + 4 * os::mib, before);
  std::memset(data(), 7, bytes);
  EXPECT_TRUE(holds_seven(0, bytes)) << "written again";
}

// After the first use in communication: one page out of a huge one.
TEST_F(Advice, DontNeedInHugePages) {
  Arena::process().make_huge(data(), bytes);
  ASSERT_EQ(madvise(data() + 2 * os::mib + page, page, MADV_DONTNEED), 0);
  EXPECT_TRUE(test::is_zero(data() + 2 * os::mib + page, page));
  EXPECT_TRUE(holds_seven(0, 2 * os::mib + page));
  EXPECT_TRUE(holds_seven(2 * os::mib + 2 * page, bytes));
  std::memset(data(), 9, bytes);
  Arena::process().make_huge(data(), bytes);
  EXPECT_EQ(data()[2 * os::mib + page], std::byte{9});
}

TEST_F(Advice, PeersSeeTheZeroes) {
  Arena& arena = Arena::process();
  void* peer = mmap(nullptr, bytes, PROT_READ, MAP_SHARED, arena.descriptor(),
                    static_cast<off_t>(arena.offset(data())));
  ASSERT_NE(peer, MAP_FAILED);
  EXPECT_EQ(*static_cast<std::byte*>(peer), std::byte{7});
  ASSERT_EQ(madvise(data(), bytes, MADV_DONTNEED), 0);
  EXPECT_TRUE(test::is_zero(peer, bytes));
  munmap(peer, bytes);
}

TEST_F(Advice, FreeIsAllowed) {
  ASSERT_EQ(madvise(data(), bytes, MADV_FREE), 0);
  for (std::size_t at = 0; at < bytes; at += page) {
    ASSERT_TRUE(test::is_zero(data() + at, page) || holds_seven(at, at + page)) << at;
  }
  std::memset(data(), 7, bytes);
  EXPECT_TRUE(holds_seven(0, bytes));
}

// Some allocators take away the right to touch what they give back.
TEST_F(Advice, DontNeedWithoutTheRightToWrite) {
  for (const int protection : {PROT_NONE, PROT_READ}) {
    std::memset(data(), 7, bytes);
    ASSERT_EQ(mprotect(data(), os::mib, protection), 0);
    EXPECT_EQ(madvise(data(), os::mib, MADV_DONTNEED), 0) << protection;
    ASSERT_EQ(mprotect(data(), os::mib, PROT_READ | PROT_WRITE), 0);
    EXPECT_TRUE(test::is_zero(data(), os::mib)) << protection;
    EXPECT_TRUE(holds_seven(os::mib, bytes));
  }
}

TEST_F(Advice, LockedPagesAreRefusedAsEver) {
  if (mlock(data(), page) != 0) GTEST_SKIP() << "no memory may be locked";
  errno = 0;
  EXPECT_EQ(madvise(data(), page, MADV_DONTNEED), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_TRUE(holds_seven(0, page));
  munlock(data(), page);
}

TEST_F(Advice, ErrorsAreTheKernels) {
  errno = 77;
  EXPECT_EQ(madvise(data(), 0, MADV_DONTNEED), 0);
  EXPECT_EQ(madvise(data(), page, MADV_DONTNEED), 0);
  EXPECT_EQ(errno, 77) << "success leaves it";
  EXPECT_EQ(madvise(data() + 1, page, MADV_DONTNEED), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(madvise(data(), page, 4711), -1);
  EXPECT_EQ(errno, EINVAL);
  EXPECT_EQ(madvise(data(), SIZE_MAX - page, MADV_DONTNEED), -1);
  EXPECT_TRUE(holds_seven(page, bytes));
}

TEST_F(Advice, LengthsCountInWholePages) {
  ASSERT_EQ(madvise(data(), 1, MADV_DONTNEED), 0);
  EXPECT_TRUE(test::is_zero(data(), page));
  EXPECT_TRUE(holds_seven(page, bytes));
}

TEST_F(Advice, OtherMemoryIsTheKernels) {
  void* own = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(own, MAP_FAILED);
  std::memset(own, 7, bytes);
  EXPECT_EQ(madvise(own, bytes, MADV_DONTNEED), 0);
  EXPECT_TRUE(test::is_zero(own, bytes));
  EXPECT_EQ(madvise(own, bytes, MADV_FREE), 0);
  munmap(own, bytes);
  errno = 0;
  EXPECT_EQ(madvise(own, bytes, MADV_DONTNEED), -1);
  EXPECT_EQ(errno, ENOMEM);
}

// Registration libraries say both of what they register: a child cloned past the handlers of fork
// must not share the arena for it.
TEST_F(Advice, WhatChildrenFindIsDecidedForAll) {
  EXPECT_EQ(madvise(data(), bytes, MADV_DONTFORK), 0);
  EXPECT_EQ(madvise(data(), bytes, MADV_DOFORK), 0);
  const auto child = static_cast<pid_t>(syscall(SYS_clone, SIGCHLD, 0, 0, 0, 0));
  if (child == 0) {
    *static_cast<volatile std::byte*>(data()) = std::byte{1};
    _exit(0);
  }
  EXPECT_EQ(test::wait_for(child), 1000 + SIGSEGV);
  EXPECT_TRUE(holds_seven(0, bytes));
  EXPECT_EQ(madvise(data(), bytes, MADV_DONTFORK), 0);
  EXPECT_EQ(test::in_child([&] { return holds_seven(0, bytes) ? 0 : 1; }), 0);
}

// A stack has a guard page, and is freed with it: the next block must not run into it.
TEST_F(Advice, AGuardPageGoesWithItsBlock) {
  EXPECT_EQ(test::in_child([&] {
              if (mprotect(data() + 3 * page, page, PROT_NONE) != 0) return 1;
              block_.reset();
              test::Block next = test::block_of(bytes);
              std::memset(next.get(), 1, bytes);
              return static_cast<std::byte*>(next.get())[3 * page] == std::byte{1} ? 0 : 2;
            }),
            0);
}

// Of the kernel's own kind, which a change of rights does not remove.
TEST_F(Advice, AGuardOfTheKernelGoesWithItsBlock) {
  constexpr int install_guard = 102;
  if (madvise(data() + 3 * page, page, install_guard) != 0) GTEST_SKIP() << "Linux before 6.15";
  EXPECT_EQ(test::in_child([&] {
              if (madvise(data() + 3 * page, page, install_guard) != 0) return 1;
              block_.reset();
              test::Block next = test::block_of(bytes);
              std::memset(next.get(), 1, bytes);
              return 0;
            }),
            0);
}

TEST_F(Advice, AGuardPageByKeysGoesWithItsBlock) {
  constexpr int no_key = -1;
  EXPECT_EQ(test::in_child([&] {
              if (pkey_mprotect(data() + 3 * page, page, PROT_NONE, no_key) != 0) return 1;
              block_.reset();
              test::Block next = test::block_of(bytes);
              std::memset(next.get(), 1, bytes);
              return 0;
            }),
            0);
}

// Pages that stay locked could not be given back, and count against a limit.
TEST_F(Advice, ALockGoesWithItsBlock) {
  const void* const place = data() + page;
  if (mlock(place, page) != 0) GTEST_SKIP() << "no memory may be locked";
  EXPECT_NE(test::flags_of(place).find(" lo "), std::string::npos);
  block_.reset();
  EXPECT_EQ(test::flags_of(place).find(" lo "), std::string::npos);
}

TEST_F(Advice, BlocksAreInCoreDumpsAgain) {
  const void* const place = data() + page;
  ASSERT_EQ(madvise(data() + page, page, MADV_DONTDUMP), 0);
  EXPECT_NE(test::flags_of(place).find(" dd "), std::string::npos);
  block_.reset();
  EXPECT_EQ(test::flags_of(place).find(" dd "), std::string::npos);
}

// By realloc: to libc, and to a smaller block where it is.
TEST_F(Advice, AGuardPageGoesWithWhatReallocGivesBack) {
  for (const std::size_t smaller : {std::size_t{1000}, bytes / 2}) {
    EXPECT_EQ(test::in_child([&] {
                if (mprotect(data() + bytes - page, page, PROT_NONE) != 0) return 1;
                void* kept = std::realloc(block_.release(), smaller);
                test::Block next = test::block_of(bytes);
                test::Block after = test::block_of(bytes);
                std::memset(next.get(), 1, bytes);
                std::memset(after.get(), 1, bytes);
                std::free(kept);
                return 0;
              }),
              0)
        << smaller;
  }
}

// A pool keeps blocks in many pieces and relies on zeros; it is compared with a model.
TEST_F(Advice, APoolOfPages) {
  std::vector<bool> given_back(bytes / page, false);
  std::uint64_t state = 4711;
  for (int step = 0; step < 300; ++step) {
    state = state * 6364136223846793005 + 1442695040888963407;
    const std::size_t first = (state >> 33) % given_back.size();
    const std::size_t last = std::min(given_back.size(), first + (state >> 20) % 700 + 1);
    const bool gives = (state >> 60) % 2 == 0;
    std::byte* at = data() + first * page;
    if (gives) {
      ASSERT_EQ(madvise(at, (last - first) * page, MADV_DONTNEED), 0);
    } else {
      std::memset(at, 7, (last - first) * page);
    }
    std::fill(given_back.begin() + static_cast<std::ptrdiff_t>(first),
              given_back.begin() + static_cast<std::ptrdiff_t>(last), gives);
    if (step % 50 == 7) Arena::process().make_huge(data(), bytes);
  }
  for (std::size_t i = 0; i < given_back.size(); ++i) {
    const bool right = given_back[i] ? test::is_zero(data() + i * page, page)
                                     : holds_seven(i * page, (i + 1) * page);
    ASSERT_TRUE(right) << i;
  }
}

}  // namespace
}  // namespace ropewalk
