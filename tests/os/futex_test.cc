#include "os/futex.hpp"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <thread>

namespace ropewalk::os {
namespace {

using Word = std::atomic<std::uint32_t>;

TEST(Futex, DoesNotSleepOnAChangedWord) {
  const Word word{7};
  EXPECT_EQ(futex_wait(word, 6), FutexResult::changed);
}

TEST(Futex, EndsAtItsTimeout) {
  const Word word{7};
  FutexResult result = FutexResult::woken;  // a signal may end the sleep early
  while (result == FutexResult::woken) result = futex_wait(word, 7, 1'000'000);
  EXPECT_EQ(result, FutexResult::timeout);
  EXPECT_EQ(futex_wake(word), 0);
}

// The waker stores before it wakes, so the sleeper ends whichever comes first.
void wait_for_one(const Word& word) {
  while (word.load(std::memory_order_acquire) != 1) futex_wait(word, 0);
}
void store_one(Word& word) {
  word.store(1, std::memory_order_release);
  futex_wake(word);
}

TEST(Futex, WakesAThread) {
  Word word{0};
  std::thread sleeper([&] { wait_for_one(word); });
  store_one(word);
  sleeper.join();
}

TEST(Futex, WakesAnotherProcessThroughSharedMemory) {
  void* page = mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  ASSERT_NE(page, MAP_FAILED);
  auto& word = *new (page) Word{0};
  const pid_t child = fork();
  if (child == 0) {
    wait_for_one(word);
    _exit(0);
  }
  store_one(word);
  int status = -1;
  EXPECT_EQ(waitpid(child, &status, 0), child);
  EXPECT_EQ(status, 0);
  munmap(page, 4096);
}

}  // namespace
}  // namespace ropewalk::os
