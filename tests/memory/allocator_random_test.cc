// Random allocations against a model: no overlap, no lost contents, sums that agree.
#include <gtest/gtest.h>

#include <map>
#include <random>

#include "os/mapping.hpp"
#include "pattern.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk {
namespace {

class Model {
 public:
  Model(const MemoryOptions& options, unsigned seed) : arena_(options), random_(seed) {}

  void run(int steps) {
    for (int step = 0; step < steps; ++step) {
      const auto choice = random_() % 100;
      if (choice < 55) {
        allocate();
      } else if (choice < 98) {
        deallocate();
      } else {
        arena_.trim();
      }
      if (testing::Test::HasFatalFailure()) return;
    }
    check_sums();
    while (!live_.empty()) deallocate();
    EXPECT_EQ(arena_.statistics().live_bytes, 0u);
    EXPECT_EQ(arena_.statistics().ignored_frees, 0u);
  }

 private:
  struct Live {
    std::size_t bytes;
    std::uint64_t seed;
  };

  std::size_t random_bytes() {
    const unsigned bits = random_() % 21;  // sizes of all magnitudes, up to 2 MiB
    return random_() % (std::size_t{1} << bits);
  }

  void allocate() {
    const std::size_t bytes = random_bytes();
    const std::size_t alignment = std::size_t{1} << (random_() % 14);
    std::byte* block = nullptr;
    try {
      block = static_cast<std::byte*>(arena_.allocate(bytes, alignment));
    } catch (const Error& error) {
      ASSERT_EQ(error.code(), ErrorCode::memory);
      for (int i = 0; i < 10; ++i) deallocate();
      return;
    }
    ASSERT_EQ(reinterpret_cast<std::uintptr_t>(block) % alignment, 0u);
    ASSERT_TRUE(arena_.contains(block, bytes));
    const auto next = live_.lower_bound(block);
    if (next != live_.end()) {
      ASSERT_LE(block + arena_.usable_bytes(block), next->first);
    }
    if (next != live_.begin()) {
      const auto before = std::prev(next);
      ASSERT_LE(before->first + arena_.usable_bytes(before->first), block);
    }
    const std::uint64_t seed = random_();
    test::fill(block, bytes, seed);
    live_.emplace(block, Live{bytes, seed});
  }

  void deallocate() {
    if (live_.empty()) return;
    auto victim = live_.begin();
    std::advance(victim,
                 static_cast<std::ptrdiff_t>(random_() % std::min<std::size_t>(live_.size(), 64)));
    EXPECT_TRUE(test::holds(victim->first, victim->second.bytes, victim->second.seed));
    arena_.deallocate(victim->first);
    live_.erase(victim);
  }

  void check_sums() {
    std::size_t sum = 0;
    for (const auto& [block, live] : live_) sum += arena_.usable_bytes(block);
    EXPECT_EQ(arena_.statistics().live_bytes, sum);
  }

  Arena arena_;
  std::mt19937 random_;
  std::map<std::byte*, Live> live_;
};

MemoryOptions options(PagePolicy pages, bool cache) {
  MemoryOptions result;
  result.pages = pages;
  result.reserve_bytes = 16 * os::mib;
  result.cache = cache;
  return result;
}

TEST(RandomAllocations, OnSmallPages) { Model(options(PagePolicy::never, true), 1).run(3000); }
TEST(RandomAllocations, WithoutCache) { Model(options(PagePolicy::never, false), 2).run(3000); }
TEST(RandomAllocations, OnTheBestPages) { Model(options(PagePolicy::prefer, true), 3).run(1000); }

}  // namespace
}  // namespace ropewalk
