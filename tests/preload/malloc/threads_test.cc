// Tests many threads, and blocks that one allocates and another frees.
#include <atomic>
#include <random>
#include <thread>
#include <vector>

#include "blocks.hpp"

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

}  // namespace
}  // namespace ropewalk
