// Statistics, test data, page kinds, machine facts and threads of the benchmarks.
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <numeric>
#include <random>
#include <stdexcept>

#include "common/budget.hpp"
#include "common/machine.hpp"
#include "common/pages.hpp"
#include "common/pattern.hpp"
#include "common/statistics.hpp"
#include "common/timed_threads.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr double second = 1e6;  // microseconds

// This bench runs on a clock that only the bench moves on: each part calibrates, and measures
// rounds.
class Rehearsal {
 public:
  struct Part {
    double calibration_us;
    double round_us;
  };
  Rehearsal(const CommonOptions& options, const std::vector<Expected>& expected,
            const std::vector<Part>& parts, int wanted) {
    Budget budget(options, alone_, expected, [this] { return now_us_; });
    announced_seconds = budget.announced_seconds();
    for (const Part& part : parts) {
      budget.begin();
      now_us_ += part.calibration_us + part.round_us;
      rounds.push_back(budget.rounds(wanted, part.round_us));
      now_us_ += (rounds.back() - 1) * part.round_us;
    }
    took_seconds = now_us_ / second;
  }
  double announced_seconds;
  double took_seconds;
  std::vector<int> rounds;  // of each part

 private:
  const Ranks alone_{Need::if_run, false};
  double now_us_ = 0;
};

CommonOptions limited_to(double seconds) {
  CommonOptions options;
  options.time_seconds = seconds;
  return options;
}

// These three parts take what was expected of them: 21, 210 and 21 s with 20 rounds each, 4, 40 and
// 4 s with three.
const std::vector<Rehearsal::Part> unlike_parts = {
    {second, second}, {10 * second, 10 * second}, {second, second}};
const std::vector<Expected> expected_of_them = {
    {21 * second, 4 * second}, {210 * second, 40 * second}, {21 * second, 4 * second}};

TEST(Budget, WithTimeEnoughTheAnnouncementIsWhatItTakes) {
  const Rehearsal run(limited_to(1000), expected_of_them, unlike_parts, 20);
  EXPECT_EQ(run.rounds, (std::vector<int>{20, 20, 20}));
  EXPECT_DOUBLE_EQ(run.announced_seconds, 252);
  EXPECT_DOUBLE_EQ(run.took_seconds, 252);
}

TEST(Budget, LessTimeMeansFewerRoundsOfEachPart) {
  const Rehearsal run(limited_to(120), expected_of_them, unlike_parts, 20);
  EXPECT_DOUBLE_EQ(run.announced_seconds, 120);
  for (const int rounds : run.rounds) {
    EXPECT_GT(rounds, Budget::least_rounds);
    EXPECT_LT(rounds, 20);
  }
  EXPECT_LE(run.took_seconds, 120);
  EXPECT_GT(run.took_seconds, 100) << "time was left, and rounds were wanted";
}

TEST(Budget, NoPartIsLeftOutAndThatIsAnnounced) {
  const Rehearsal run(limited_to(1), expected_of_them, unlike_parts, 20);
  EXPECT_EQ(run.rounds, std::vector<int>(3, Budget::least_rounds));
  EXPECT_DOUBLE_EQ(run.announced_seconds, 48);
  EXPECT_DOUBLE_EQ(run.took_seconds, 48);
}

// A part is ten times as fast as expected, or ten times as slow: the parts after it make up for it.
TEST(Budget, WhatAPartSavesOrOverdrawsTheOthersShare) {
  const std::vector<Expected> alike(4, {100 * second, second});
  const std::vector<Rehearsal::Part> as_expected(3, {0, 5 * second});
  for (const double first : {0.5 * second, 20 * second}) {
    std::vector<Rehearsal::Part> parts = {{0, first}};
    parts.insert(parts.end(), as_expected.begin(), as_expected.end());
    const Rehearsal run(limited_to(200), alike, parts, 20);
    EXPECT_EQ(run.rounds[0], first < second ? 20 : Budget::least_rounds);
    EXPECT_EQ(run.rounds[1], first < second ? 12 : 9);
    EXPECT_LE(run.took_seconds, 200);
    EXPECT_GT(run.took_seconds, 180);
  }
}

TEST(Budget, SamplesAreShorterWhereTimeIsShort) {
  const Ranks alone(Need::if_run, false);
  double now = 0;
  const Expected part{100 * second, second};
  Budget budget(limited_to(10), alone, {part, part}, [&] { return now; });
  budget.begin();  // has 5 s
  EXPECT_DOUBLE_EQ(budget.sample_us(1000, 100), 1000);
  EXPECT_DOUBLE_EQ(budget.sample_us(1000, 10000), 500);
  EXPECT_DOUBLE_EQ(budget.sample_us(1000, 1e9), 250);
}

// By hand: (20 + 2) rounds of 2 columns, a sample and a call each; at least 5 of a quarter of it.
TEST(Budget, ExpectsSamplesOrWholeCalls) {
  EXPECT_DOUBLE_EQ(sampling(2, 20, 1000, 10).all_us, 44 * 1010);
  EXPECT_DOUBLE_EQ(sampling(2, 20, 1000, 10).least_us, 10 * 260);
  EXPECT_DOUBLE_EQ(sampling(2, 20, 1000, 5000).all_us, 44 * 10000);
  EXPECT_DOUBLE_EQ(sampling(2, 20, 1000, 5000).least_us, 10 * 10000);
  EXPECT_DOUBLE_EQ(sampling(1, 2, 1000, 5000).least_us, 4 * 10000);
  EXPECT_DOUBLE_EQ(least_samples(2), 10);
}

TEST(Budget, RoundsThatWereAskedForAreMade) {
  CommonOptions options;
  options.rounds = 50;
  const Rehearsal unlimited(options, expected_of_them, unlike_parts, 50);
  EXPECT_EQ(unlimited.rounds, std::vector<int>(3, 50));
  options.time_seconds = 1;
  const Rehearsal both(options, expected_of_them, unlike_parts, 50);
  EXPECT_EQ(both.rounds, std::vector<int>(3, Budget::least_rounds));
}

TEST(Budget, WordsNameTheTimeAndTheOption) {
  const Ranks alone(Need::if_run, false);
  const auto text = [&](const CommonOptions& options) {
    return Budget(options, alone, expected_of_them).text();
  };
  EXPECT_EQ(text(limited_to(300)), "about 4 min 12 s (limit 5 min 0 s: --time)");
  EXPECT_EQ(text(limited_to(60)), "about 1 min 0 s, with as many rounds as fit (--time)");
  EXPECT_EQ(text(limited_to(5)),
            "about 48 s, since no case has fewer than 3 rounds (--time asks for 5.0 s)");
  EXPECT_EQ(text(CommonOptions()), "about 1 min 40 s, with as many rounds as fit (--time)");
  CommonOptions options;
  options.rounds = 20;
  EXPECT_EQ(text(options), "about 4 min 12 s (no limit: --rounds without --time)");
}

TEST(Statistics, OddAndEvenMedian) {
  EXPECT_DOUBLE_EQ(summarize({3, 1, 2}).median, 2);
  EXPECT_DOUBLE_EQ(summarize({4, 1, 3, 2}).median, 2.5);
}

TEST(Statistics, P99IsTheNearestRank) {
  std::vector<double> samples(100);
  std::iota(samples.begin(), samples.end(), 1.0);
  std::shuffle(samples.begin(), samples.end(), std::mt19937(7));
  const Summary summary = summarize(samples);
  EXPECT_DOUBLE_EQ(summary.p99, 99);
  EXPECT_DOUBLE_EQ(summary.min, 1);
  EXPECT_DOUBLE_EQ(summary.max, 100);
  EXPECT_EQ(summary.n, 100U);
  EXPECT_DOUBLE_EQ(summarize({5, 9}).p99, 9);
}

// Ranks as tables of the sign test have them: 6 of 6, 2 and 9 of 10, 40 and 61 of 100.
TEST(Statistics, IntervalOfTheMedianHasTheRanksOfTheBinomialDistribution) {
  const auto interval = [](std::size_t n) {
    std::vector<double> samples(n);
    std::iota(samples.rbegin(), samples.rend(), 1.0);
    const Summary summary = summarize(samples);
    return std::pair(summary.low95, summary.high95);
  };
  EXPECT_EQ(interval(5), std::pair(0.0, 0.0));
  EXPECT_EQ(interval(6), std::pair(1.0, 6.0));
  EXPECT_EQ(interval(10), std::pair(2.0, 9.0));
  EXPECT_EQ(interval(20), std::pair(6.0, 15.0));
  EXPECT_EQ(interval(100), std::pair(40.0, 61.0));
  EXPECT_EQ(interval(1000), std::pair(469.0, 532.0));
  const auto [low, high] = interval(10000);
  EXPECT_NEAR(low, 4902, 1);
  EXPECT_NEAR(high, 5099, 1);
}

// By hand: mean 5, squares 9+1+1+1+0+0+4+16 = 32, sqrt(32 / (8 * 7)).
TEST(Statistics, ErrorIsThatOfTheMean) {
  const Summary summary = summarize({2, 4, 4, 4, 5, 5, 7, 9});
  EXPECT_DOUBLE_EQ(summary.mean, 5);
  EXPECT_NEAR(summary.error, 0.7559289460184544, 1e-12);
}

TEST(Statistics, OneAndNoSample) {
  EXPECT_DOUBLE_EQ(summarize({4}).p99, 4);
  EXPECT_DOUBLE_EQ(summarize({4}).error, 0);
  EXPECT_EQ(summarize({}).n, 0U);
  EXPECT_DOUBLE_EQ(mb_per_s(100, 0), 0);
}

TEST(Statistics, RatesTurnTimesRound) {
  const Rate rates = rate(1000, summarize({1, 2, 4}));
  EXPECT_DOUBLE_EQ(rates.median, 500);
  EXPECT_DOUBLE_EQ(rates.min, 250);
  EXPECT_DOUBLE_EQ(rates.max, 1000);
}

TEST(Pattern, ArrivesWholeOrIsFound) {
  for (const std::size_t bytes :
       {std::size_t{0}, std::size_t{1}, std::size_t{7}, std::size_t{96}, std::size_t{4099}}) {
    std::vector<unsigned char> data(bytes + 1);
    unsigned char* unaligned = data.data() + 1;
    const std::uint64_t key = pattern_key(1, 2, 3, 4);
    fill_pattern(unaligned, bytes, key);
    EXPECT_EQ(check_pattern(unaligned, bytes, key), bytes);
    for (const std::size_t at : {std::size_t{0}, bytes / 2, bytes - 1}) {
      if (bytes == 0) break;
      unaligned[at] ^= 1;
      EXPECT_EQ(check_pattern(unaligned, bytes, key), at / 8 * 8);
      unaligned[at] ^= 1;
    }
  }
}

TEST(Pattern, TellsRankDirectionSlotAndSerialApart) {
  std::vector<std::uint64_t> keys;
  for (std::uint64_t i = 0; i < 4; ++i) {
    for (std::uint64_t j = 0; j < 4; ++j) {
      for (std::uint64_t k = 0; k < 4; ++k) keys.push_back(pattern_key(i, j, k, 1));
      keys.push_back(pattern_key(i, j, 0, 2));
    }
  }
  std::sort(keys.begin(), keys.end());
  EXPECT_EQ(std::adjacent_find(keys.begin(), keys.end()), keys.end());
}

TEST(Pattern, ShiftedDataIsWrong) {
  std::vector<std::uint64_t> data(64);
  fill_pattern(data.data(), 512, 99);
  std::memmove(data.data(), data.data() + 1, 504);
  EXPECT_NE(check_pattern(data.data(), 504, 99), 504U);
}

TEST(Pages, EveryKindHasOptions) {
  for (const std::string& kind : page_kinds()) {
    const MemoryOptions options = memory_options(kind);
    if (kind == "huge")
      EXPECT_EQ(options.pages, PagePolicy::prefer);
    else if (kind == "small")
      EXPECT_EQ(options.pages, PagePolicy::never);
    else
      EXPECT_STREQ(name(options.source.value()), kind.c_str());
  }
  EXPECT_THROW(memory_options("enormous"), Error);
}

TEST(Pages, AreCrossedWithPlaces) {
  using Kinds = std::vector<std::string>;
  EXPECT_EQ(placed({"huge", "thp"}, "any"), (Kinds{"huge", "thp"}));
  EXPECT_EQ(placed({"huge", "thp"}, "hbm,0,hbm"),
            (Kinds{"huge@hbm", "thp@hbm", "huge@0", "thp@0"}));
  EXPECT_EQ(memory_options("huge@hbm").kind, MemoryKind::hbm);
  EXPECT_EQ(memory_options("huge@hbm").pages, PagePolicy::prefer);
  EXPECT_EQ(memory_options("thp@12").node, 12);
  EXPECT_EQ(memory_options("thp@12").source, PageSource::thp);
  EXPECT_EQ(memory_options("thp").node, std::nullopt);
  for (const char* wrong : {"mcdram", "1.5", "", "99999"}) {
    EXPECT_THROW(placed({"huge"}, wrong), Error) << wrong;
  }
}

TEST(Pages, BackingTellsWhatTheKernelGave) {
  const PageBlock block = page_block("small", 1 << 16);
  const BackingReport found = backing("small", block);
  EXPECT_FALSE(found.all_huge);
  EXPECT_NE(found.text.find("4 KiB 100 %"), std::string::npos) << found.text;
  EXPECT_EQ(to_json(found).value("source", ""), "shmem-small");
}

TEST(Pages, HugeThatIsSmallIsNamed) {
  BackingReport found;
  found.kind = "huge";
  found.text = "4 KiB 100 %";
  found.downgrade = "no pool";
  EXPECT_NE(line(found).find("NOT huge: no pool"), std::string::npos);
  found.all_huge = true;
  EXPECT_EQ(line(found).find("NOT"), std::string::npos);
}

TEST(Machine, CachesAreReadAsTheKernelWritesThem) {
  const auto root = std::filesystem::path(testing::TempDir()) / "ropewalk-bench-caches";
  const char* entries[][4] = {{"3", "Unified", "32768K", "0-7"},
                              {"1", "Instruction", "32K", "0"},
                              {"1", "Data", "48K", "0"}};
  for (int i = 0; i < 3; ++i) {
    const auto folder = root / ("index" + std::to_string(i));
    std::filesystem::create_directories(folder);
    const char* files[] = {"level", "type", "size", "shared_cpu_list"};
    for (int f = 0; f < 4; ++f) std::ofstream(folder / files[f]) << entries[i][f] << '\n';
  }
  const std::vector<CoreCache> found = caches(root.string());
  std::filesystem::remove_all(root);
  ASSERT_EQ(found.size(), 2U);
  EXPECT_EQ(found[0].bytes, 48U << 10);
  EXPECT_EQ(found[1].level, 3);
  EXPECT_EQ(found[1].bytes, 32U << 20);
  EXPECT_EQ(found[1].shared_by, "0-7");
}

TEST(Machine, LineHasWhatTheFormatAsksFor) {
  const Json line = machine_line("program", "program --quick");
  for (const char* key : {"bench", "host", "kernel", "cpu", "caches", "pages", "commit"}) {
    EXPECT_TRUE(line.contains(key)) << key;
  }
  EXPECT_EQ(line.begin().key(), "bench");
  EXPECT_EQ(line["bench"], "machine");
  EXPECT_FALSE(machine_text(line).empty());
}

TEST(TimedThreads, EveryThreadRunsOnceARun) {
  TimedThreads team(3);
  std::array<std::atomic<int>, 3> runs = {};
  for (int i = 0; i < 5; ++i) {
    EXPECT_GE(team.run([&](int thread) { ++runs.at(static_cast<std::size_t>(thread)); }), 0);
  }
  for (const auto& count : runs) EXPECT_EQ(count.load(), 5);
}

TEST(TimedThreads, ErrorsOfAnyThreadReachTheCaller) {
  TimedThreads team(2);
  for (int bad = 0; bad < 2; ++bad) {
    EXPECT_THROW(team.run([&](int thread) {
      if (thread == bad) throw std::runtime_error("thrown");
    }),
                 std::runtime_error);
  }
  EXPECT_NO_THROW(team.run([](int) {}));
}

}  // namespace
}  // namespace ropewalk::bench
