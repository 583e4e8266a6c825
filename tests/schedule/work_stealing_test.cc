// Each iteration runs once in a loop, for all numbers of workers, shares and blocks; and what is
// refused.
#include <gtest/gtest.h>

#include <atomic>
#include <barrier>
#include <random>
#include <thread>
#include <vector>

#include "ropewalk/schedule.hpp"
#include "schedule/ranges.hpp"

namespace ropewalk {
namespace {

template <class Body>
std::string message_of(Body&& body) {
  try {
    body();
  } catch (const Error& error) {
    return error.code() == ErrorCode::argument ? error.what() : "wrong code";
  }
  return "no error";
}

TEST(WorkStealing, OneWorkerRunsInOrder) {
  WorkStealing loop(10, 1, 0, 4);
  for (int repetition = 0; repetition < 3; ++repetition) {
    std::vector<std::size_t> begins;
    std::size_t done = 0;
    loop.run(0, [&](std::size_t begin, std::size_t end) {
      begins.push_back(begin);
      done += end - begin;
    });
    EXPECT_EQ(begins, (std::vector<std::size_t>{0, 4, 8}));
    EXPECT_EQ(done, 10U);
  }
  EXPECT_EQ(loop.counts(0).own, 9U);
  EXPECT_EQ(loop.counts(0).stolen, 0U);
}

TEST(WorkStealing, StealsHalfOfTheLargestRest) {
  WorkStealing loop(16, 3, 1, 1);  // worker 1 has 0 to 7, worker 2 has 8 to 15
  EXPECT_EQ(loop.next(1).begin, 0U);
  EXPECT_EQ(loop.next(0).begin, 12U);  // worker 2 has more: its upper half
  EXPECT_EQ(loop.next(0).begin, 13U);  // shown by itself meanwhile
  EXPECT_EQ(loop.next(2).begin, 8U);
  EXPECT_EQ(loop.counts(0).stolen, 1U);
  EXPECT_EQ(loop.counts(0).own, 1U);
}

TEST(WorkStealing, PrefersVictimsOnItsNode) {
  schedule::Ranges ranges(3, 2);
  ranges.reset(8);  // worker 1: 0 to 3, worker 2: 4 to 7
  ranges.set_place(0, 1);
  ranges.set_place(1, 1);
  EXPECT_EQ(ranges.take(1).number, 0U);
  EXPECT_EQ(ranges.take(0).number, 2U);  // of the shorter, near rest 1-3: 2 and 3
}

TEST(WorkStealing, AllCommunicatingBeginWithShares) {
  WorkStealing loop(4, 2, 2, 1);
  EXPECT_EQ(loop.next(0).begin, 0U);
  EXPECT_EQ(loop.next(1).begin, 2U);
}

TEST(WorkStealing, NothingToDo) {
  WorkStealing loop(0, 2, 1);
  for (int repetition = 0; repetition < 3; ++repetition) {
    EXPECT_TRUE(loop.next(0).empty());
    EXPECT_TRUE(loop.next(1).empty());
  }
}

TEST(WorkStealing, WhoIsAbsentIsNamed) {
  WorkStealing loop(4, 2, 0, 1);
  while (!loop.next(0).empty()) {
  }
  EXPECT_NE(message_of([&] {
              while (!loop.next(0).empty()) {
              }
            }).find("worker: 1 was not in the last loop"),
            std::string::npos);
  loop.reset();
  std::size_t done = 0;
  loop.run(0, [&](std::size_t begin, std::size_t end) { done += end - begin; });
  EXPECT_EQ(done, 4U);
}

TEST(WorkStealing, ResetTakesAnotherCount) {
  WorkStealing loop(100, 1);
  loop.next(0);
  loop.reset(7, 2);
  EXPECT_EQ(loop.iterations(), 7U);
  std::size_t done = 0;
  loop.run(0, [&](std::size_t begin, std::size_t end) { done += end - begin; });
  EXPECT_EQ(done, 7U);
}

TEST(WorkStealing, ARefusedResetLeavesTheLoopAsItWas) {
  WorkStealing loop(100, 1, 0, 3);
  EXPECT_NE(message_of([&] { loop.reset(std::size_t{1} << 40, 2); }), "no error");
  EXPECT_EQ(loop.iterations(), 100U);
  EXPECT_EQ(loop.block(), 3U);
  std::size_t done = 0;
  std::size_t last = 0;
  loop.run(0, [&](std::size_t begin, std::size_t end) {
    done += end - begin;
    last = std::max(last, end);
  });
  EXPECT_EQ(done, 100U);
  EXPECT_EQ(last, 100U);
}

TEST(WorkStealing, Refusals) {
  const auto says = [](std::size_t iterations, int workers, int communicating, std::size_t block) {
    return message_of([=] { WorkStealing(iterations, workers, communicating, block); });
  };
  EXPECT_EQ(says(1, 0, 0, 0).rfind("workers: 0", 0), 0U);
  EXPECT_EQ(says(1, 2, 3, 0).rfind("communicating_workers: 3", 0), 0U);
  EXPECT_EQ(says(1, 2, -1, 0).rfind("communicating_workers: -1", 0), 0U);
  EXPECT_NE(says(std::size_t{1} << 33, 1, 0, 1).find("pass at least 3"), std::string::npos);
  EXPECT_EQ(says(std::size_t{1} << 40, 1, 0, 0), "no error");
  WorkStealing loop(4, 2);
  EXPECT_EQ(message_of([&] { loop.next(2); }).rfind("worker: 2", 0), 0U);
  EXPECT_EQ(message_of([&] { (void)loop.counts(-1); }).rfind("worker: -1", 0), 0U);
}

// Uneven work, communicating workers that come late, many loops: for the thread sanitizer, too.
void run_randomly(std::mt19937& random) {
  const auto pick = [&](unsigned low, unsigned high) { return low + random() % (high - low + 1); };
  const int workers = static_cast<int>(pick(1, 5));
  const int communicating = static_cast<int>(pick(0, static_cast<unsigned>(workers)));
  const std::size_t iterations = pick(0, 300);
  WorkStealing loop(iterations, workers, communicating, pick(0, 9));
  constexpr int loops = 6;
  std::vector<std::atomic<int>> times(iterations * loops);
  std::barrier<> barrier(workers);
  const auto work = [&](int worker) {
    for (std::size_t count = 0; count < loops; ++count) {
      if (worker < communicating) std::this_thread::yield();
      loop.run(worker, [&](std::size_t begin, std::size_t end) {
        if (begin % 7 == 0) std::this_thread::yield();
        for (; begin < end; ++begin) times[count * iterations + begin].fetch_add(1);
      });
      barrier.arrive_and_wait();
    }
  };
  std::vector<std::thread> threads;
  for (int worker = 1; worker < workers; ++worker) threads.emplace_back(work, worker);
  work(0);
  for (std::thread& thread : threads) thread.join();
  for (const std::atomic<int>& time : times) ASSERT_EQ(time.load(), 1);
}

TEST(WorkStealing, EachIterationRunsOnce) {
  std::mt19937 random(20181);
  for (int repetition = 0; repetition < 40; ++repetition) run_randomly(random);
}

}  // namespace
}  // namespace ropewalk
