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
#include "common/team.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

// The clock goes on while this runs, so the times differ by orders of magnitude.
TEST(Budget, RoundsAreThoseThatFit) {
  const Ranks alone(Need::if_run, false);
  CommonOptions options;
  options.time_seconds = 1000;
  Budget budget(options, alone, 2);
  budget.begin();
  EXPECT_EQ(budget.rounds(20, 1e6), 20);     // 500 s for the first of two parts
  EXPECT_EQ(budget.rounds(20, 49.5e6), 11);  // the measured one, and 10 more
  EXPECT_EQ(budget.rounds(20, 1e12), Budget::least_rounds);
  EXPECT_EQ(budget.rounds(2, 1e12), 2);  // never more than wanted
  budget.begin();
  EXPECT_EQ(budget.rounds(20, 95e6), 11);  // what the first part has spared
}

TEST(Budget, RoundsThatWereAskedForAreMade) {
  const Ranks alone(Need::if_run, false);
  CommonOptions options;
  options.rounds = 50;
  Budget unlimited(options, alone, 1);
  unlimited.begin();
  EXPECT_EQ(unlimited.rounds(50, 1e12), 50);
  options.time_seconds = 1;
  Budget both(options, alone, 1);
  both.begin();
  EXPECT_EQ(both.rounds(50, 1e12), Budget::least_rounds);
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

TEST(Pages, BackingTellsWhatTheKernelGave) {
  const PageBlock block = page_block("small", 1 << 16);
  const Backing found = backing("small", block);
  EXPECT_FALSE(found.all_huge);
  EXPECT_NE(found.text.find("4 KiB 100 %"), std::string::npos) << found.text;
  EXPECT_EQ(to_json(found).value("source", ""), "shmem-small");
}

TEST(Pages, HugeThatIsSmallIsNamed) {
  Backing found;
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
  const std::vector<Cache> found = caches(root.string());
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

TEST(Team, EveryThreadRunsOnceARun) {
  Team team(3);
  std::array<std::atomic<int>, 3> runs = {};
  for (int i = 0; i < 5; ++i) {
    EXPECT_GE(team.run([&](int thread) { ++runs.at(static_cast<std::size_t>(thread)); }), 0);
  }
  for (const auto& count : runs) EXPECT_EQ(count.load(), 5);
}

TEST(Team, ErrorsOfAnyThreadReachTheCaller) {
  Team team(2);
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
