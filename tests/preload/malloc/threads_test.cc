// Tests many threads, and blocks that one allocates and another frees.
#include <pthread.h>
#include <sys/mman.h>
#include <unistd.h>

#include <atomic>
#include <cstring>
#include <random>
#include <thread>
#include <vector>

#include "blocks.hpp"
#include "memory/child.hpp"

namespace ropewalk {
namespace {

struct Slot {
  std::atomic<void*> block{nullptr};
};

// A block begins with its size and its seed.
void work(std::vector<Slot>& slots, std::uint64_t seed, std::atomic<int>& wrong) {
  std::mt19937_64 random(seed);
  for (int step = 0; step < 1500; ++step) {
    const std::size_t bytes = 1024 + random() % (random() % 3 == 0 ? 2 * os::mib : 4096);
    auto* words = static_cast<std::uint64_t*>(std::malloc(bytes));
    words[0] = bytes;
    words[1] = random();
    test::fill(words + 2, bytes - 16, words[1]);
    words = static_cast<std::uint64_t*>(slots[random() % slots.size()].block.exchange(words));
    if (words == nullptr) continue;
    if (!test::holds(words + 2, words[0] - 16, words[1])) ++wrong;
    std::free(words);
  }
}

TEST(Threads, BlocksChangeHands) {
  std::vector<Slot> slots(64);
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (std::uint64_t i = 0; i < 4; ++i) {
    threads.emplace_back([&, i] { work(slots, i, wrong); });
  }
  for (std::thread& thread : threads) thread.join();
  for (Slot& slot : slots) std::free(slot.block.load());
  EXPECT_EQ(wrong.load(), 0);
}

// Thousands of live blocks: the arena's own books outgrow the threshold, and must not come from it.
TEST(Threads, ManyBlocks) {
  std::vector<test::Block> blocks;
  for (int i = 0; i < 20000; ++i) blocks.push_back(test::block_of(test::threshold));
  const std::size_t committed = Arena::process().committed_bytes();
  std::mt19937_64 random(5);
  for (int round = 0; round < 20000; ++round) {
    test::Block& block = blocks[random() % blocks.size()];
    block.reset();
    block = test::block_of(test::threshold + random() % test::threshold / 4);
  }
  EXPECT_LE(Arena::process().committed_bytes(), committed + committed / 2) << "fragmentation";
}

// What a thread does under malloc is no place to cancel it, though files are read there.
void* allocate_when_cancelled(void* cancelled) {
  while (!static_cast<std::atomic<bool>*>(cancelled)->load()) {
  }
  constexpr std::size_t bytes = 8 * os::mib;
  {
    std::vector<test::Block> blocks;
    for (int i = 0; i < 24; ++i) {
      blocks.push_back(test::block_of(bytes));
      std::memset(blocks.back().get(), 1, bytes);
      Arena::process().make_huge(blocks.back().get(), bytes);
    }
    mprotect(blocks[0].get(), bytes, PROT_READ);
    madvise(blocks[0].get(), bytes, MADV_DONTNEED);  // punches a hole into the file
    mprotect(blocks[0].get(), bytes, PROT_READ | PROT_WRITE);
  }
  pthread_testcancel();
  return nullptr;
}

TEST(Threads, AreNotCancelledWithinMalloc) {
  std::atomic<bool> cancelled{false};
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, nullptr, allocate_when_cancelled, &cancelled), 0);
  pthread_cancel(thread);
  cancelled.store(true);
  void* result = nullptr;
  pthread_join(thread, &result);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

// Those that fork neither: the parent reads from a pipe until its child has its copy.
TEST(Threads, AreNotCancelledWithinAFork) {
  const test::Block block = test::block_of(os::mib);
  std::memset(block.get(), 1, os::mib);
  const auto fork_when_cancelled = [](void* /*nothing*/) -> void* {
    pthread_cancel(pthread_self());
    const pid_t child = fork();
    if (child == 0) _exit(0);
    int state = 0;
    pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &state);
    EXPECT_EQ(test::wait_for(child), 0);
    pthread_setcancelstate(state, nullptr);
    pthread_testcancel();
    return nullptr;
  };
  pthread_t thread{};
  ASSERT_EQ(pthread_create(&thread, nullptr, fork_when_cancelled, nullptr), 0);
  void* result = nullptr;
  pthread_join(thread, &result);
  EXPECT_EQ(result, PTHREAD_CANCELED);
}

}  // namespace
}  // namespace ropewalk
