// These tests run the search of `ropewalk tune` on times that are computed, not measured. They
// check that a threshold that was shifted is found again, and that noise changes nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "tune/questions.hpp"
#include "tune/search.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t KiB = 1024;

// A Cost returns the microseconds of one way for a size in bytes.
using Cost = std::function<double(std::size_t)>;

// Machine imitates the measurements of a machine. It returns 15 times for each way, each off by a
// share of up to `noise`, and now and then one is five times as long, as after an interrupt.
class Machine {
 public:
  Machine(std::vector<Cost> ways, double noise) : ways_(std::move(ways)), noise_(noise) {}

  Measure measure() {
    return [this](std::size_t bytes) {
      asked_.push_back(bytes);
      Times times(ways_.size());
      for (int round = 0; round < 15; ++round) {
        for (std::size_t way = 0; way < ways_.size(); ++way) {
          times[way].push_back(ways_[way](bytes) * disturbance());
        }
      }
      return std::vector<Times>{times};
    };
  }
  const std::vector<std::size_t>& asked() const { return asked_; }

 private:
  double disturbance() {
    std::uniform_real_distribution<double> share(-noise_, noise_);
    const bool interrupted = noise_ > 0 && random_() % 16 == 0;
    return (1 + share(random_)) * (interrupted ? 5 : 1);
  }

  std::vector<Cost> ways_;
  double noise_;
  std::mt19937 random_{1};
  std::vector<std::size_t> asked_;
};

Cost line(double latency, double each) {
  return [=](std::size_t bytes) { return latency + each * static_cast<double>(bytes); };
}

// The two ways take the same time at 8 KiB, since 8192 x 0.5e-4 is 0.4096.
const std::vector<Cost> cross_at_8k = {line(0.1, 1e-4), line(0.1 + 0.4096, 0.5e-4)};

Border border(std::size_t standard, bool from_on) {
  return {standard, 64, std::size_t{1} << 40, from_on,
          around(std::min(standard, 8 * KiB), std::max(standard, 8 * KiB), 3, 3, 64, 1 << 20)};
}

TEST(TuneBorder, ThatIsShiftedIsFoundAgain) {
  for (const std::size_t shifted : {512, 1024, 2048, 40000, 65536, 262144}) {
    for (const bool from_on : {false, true}) {
      for (const double noise : {0.0, 0.05}) {
        Machine machine(cross_at_8k, noise);
        const Finding found = find_border(border(shifted, from_on), machine.measure());
        EXPECT_TRUE(found.changes(shifted));
        EXPECT_GE(found.value, 6 * KiB) << shifted << " " << from_on << " " << noise;
        EXPECT_LE(found.value, 11 * KiB) << shifted << " " << from_on << " " << noise;
        EXPECT_GT(found.gain, least_gain);
      }
    }
  }
}

TEST(TuneBorder, ThatIsRightStays) {
  for (const double noise : {0.0, 0.05, 0.3}) {
    Machine machine(cross_at_8k, noise);
    const Finding found = find_border(border(8 * KiB, false), machine.measure());
    EXPECT_EQ(found.value, 8 * KiB) << noise;
    EXPECT_EQ(found.gain, 0);
  }
}

TEST(TuneBorder, StaysWhereTheOtherWaySavesLittle) {
  Machine machine({line(1, 0), line(0.98, 0)}, 0);  // way 1 saves 2 % everywhere
  EXPECT_EQ(find_border(border(8 * KiB, false), machine.measure()).value, 8 * KiB);
}

// Way 1 takes a half to a twenty-thousandth of the time.
TEST(TuneBorder, TellsNoiseInTheUnitOfWhatIsSaved) {
  const Measure measure = [](std::size_t) {
    return std::vector<Times>{{{1, 1, 1}, {0.5, 0.005, 0.00005}}};
  };
  const Finding found = find_border({8 * KiB, 64, 1 << 20, true, {1 * KiB, 2 * KiB}}, measure);
  ASSERT_TRUE(found.changes(8 * KiB));
  EXPECT_GT(found.noise, 0);
  EXPECT_LT(found.noise, found.gain);
}

TEST(TuneBorder, StaysWhereTheNoiseIsLargerThanWhatIsSaved) {
  int changed = 0;
  for (int i = 0; i < 20; ++i) {
    Machine machine({line(1, 0), line(0.96, 0)}, 0.5);
    changed += find_border(border(8 * KiB, false), machine.measure()).changes(8 * KiB) ? 1 : 0;
  }
  EXPECT_EQ(changed, 0);
}

TEST(TuneBorder, GoesNoFartherThanWhatWasMeasured) {
  const std::vector<std::size_t> sizes = {1 * KiB, 2 * KiB, 4 * KiB};
  Machine first({line(1, 0), line(2, 0)}, 0);
  EXPECT_EQ(find_border({2 * KiB, 64, 1 << 20, false, sizes}, first.measure()).value, 4 * KiB);
  EXPECT_EQ(find_border({2 * KiB, 64, 1 << 20, true, sizes}, first.measure()).value, 8 * KiB);
  Machine second({line(2, 0), line(1, 0)}, 0);
  EXPECT_EQ(find_border({2 * KiB, 64, 1 << 20, false, sizes}, second.measure()).value, 512U);
  EXPECT_EQ(find_border({2 * KiB, 64, 1 << 20, true, sizes}, second.measure()).value, 1 * KiB);
  EXPECT_EQ(find_border({2 * KiB, 700, 1 << 20, false, sizes}, second.measure()).value, 700U);
}

TEST(TuneBorder, IsASizeThatGoesTheWayOfTheThresholdItself) {
  for (const bool from_on : {false, true}) {
    Machine machine(cross_at_8k, 0);
    const Finding found = find_border(border(1 * KiB, from_on), machine.measure());
    const auto at = std::ranges::find(found.sizes, found.value, &SizeFound::bytes);
    ASSERT_NE(at, found.sizes.end());
    EXPECT_EQ(at->ratio[1] <= 1, from_on);
  }
}

TEST(TuneBorder, MeasuresItsSizesAndTwoMoreAtMost) {
  Machine machine(cross_at_8k, 0);
  const Border asked = border(1 * KiB, false);
  const Finding found = find_border(asked, machine.measure());
  EXPECT_LE(machine.asked().size(), asked.sizes.size() + 2);
  EXPECT_EQ(found.sizes.size(), machine.asked().size());
}

TEST(TuneValue, ThatIsShiftedIsFoundAgain) {
  const std::vector<std::size_t> values = {64 * KiB, 4 * KiB, 8 * KiB, 16 * KiB, 32 * KiB};
  std::vector<Cost> costs;  // They are least at 16 KiB.
  for (const std::size_t value : values) {
    const double off = std::abs(std::log2(static_cast<double>(value) / (16.0 * KiB)));
    costs.push_back(line(1 + 0.2 * off, 1e-5));
  }
  for (const double noise : {0.0, 0.05}) {
    Machine machine(costs, noise);
    const Finding found = find_value(values, {32 * KiB, 128 * KiB}, machine.measure());
    EXPECT_EQ(found.value, 16 * KiB) << noise;
    EXPECT_GT(found.gain, 0.1);
  }
}

TEST(TuneValue, OfEqualOnesIsTheDefault) {
  for (const double noise : {0.0, 0.05}) {
    Machine machine({line(1, 0), line(0.99, 0), line(1.2, 0)}, noise);
    EXPECT_EQ(find_value({8, 4, 16}, {100, 200}, machine.measure()).value, 8U);
  }
}

TEST(TuneSizes, AreFactorsOfTwoWithinTheBounds) {
  EXPECT_EQ(around(1024, 4096, 1, 1, 0, 1 << 20),
            (std::vector<std::size_t>{512, 1024, 2048, 4096, 8192}));
  EXPECT_EQ(around(512, 512, 3, 3, 104, 2048),
            (std::vector<std::size_t>{128, 256, 512, 1024, 2048}));
  EXPECT_EQ(around(0, 4, 0, 0, 0, 16), (std::vector<std::size_t>{1, 2, 4}));
  EXPECT_EQ(around(5184, 5184, 1, 1, 0, 5184), (std::vector<std::size_t>{2592, 5184}));
}

// ---- the questions

TEST(TuneQuestions, HaveProfilesThatCanBeRead) {
  std::set<std::string_view> names;
  for (const Question& question : questions()) {
    EXPECT_TRUE(names.insert(question.name()).second) << question.name();
    const tuning::Profile below("p", std::string(question.beside) + std::string(question.below));
    const tuning::Profile above("p", std::string(question.beside) + std::string(question.above));
    if (!question.has_border()) {
      EXPECT_FALSE(question.sizes.empty()) << question.name();
      continue;
    }
    ASSERT_TRUE(below.line(question.id) && above.line(question.id)) << question.name();
    EXPECT_GT(below.line(question.id)->value, above.line(question.id)->value) << question.name();
    EXPECT_EQ(question.of_channel, question.calls.empty());
  }
  for (const ForcedPath& path : forced_paths()) {
    EXPECT_NO_THROW(tuning::Profile("p", path.profile)) << path.path;
  }
}

// The sizes of a question, as they are measured with two ranks where the default is in force.
std::vector<std::size_t> sizes_of(const Question& question, std::size_t shifted) {
  if (!question.sizes.empty()) return question.sizes;
  const tuning::Row& row = tuning::row(question.id);
  const std::size_t standard = tuning::default_value(row, tuning::facts_of(2, false));
  return around(std::min(shifted, standard), std::max(shifted, standard), question.down,
                question.up, row.least, row.most);
}

TEST(TuneQuestions, FindABorderThatWasShiftedByHand) {
  for (const Question& question : questions()) {
    if (!question.has_border()) continue;
    const tuning::Row& row = tuning::row(question.id);
    const std::size_t standard = tuning::default_value(row, tuning::facts_of(2, false));
    const std::vector<std::size_t> usual = sizes_of(question, standard);
    const double crossing = std::sqrt(static_cast<double>(usual.front() * usual.back()));
    for (const std::size_t shifted : {usual.front() / 2, 2 * usual.back()}) {
      if (shifted < row.least || shifted > row.most) continue;
      const std::vector<Cost> ways = {line(0.1, 2), line(0.1 + crossing, 1)};
      Machine machine(ways, 0.05);
      const Border border{shifted, row.least, row.most, question.from_on,
                          sizes_of(question, shifted)};
      const auto found = static_cast<double>(find_border(border, machine.measure()).value);
      EXPECT_GE(found, crossing / 1.5) << row.name << " " << shifted;
      EXPECT_LE(found, crossing * 1.5) << row.name << " " << shifted;
    }
  }
}

TEST(TuneQuestions, AskForEveryThresholdOfPrivateMemoryOnANode) {
  // One is asked over nodes alone, and one by ranks with XPMEM alone.
  const std::set<std::string_view> not_here = {"node.copied_bytes", "node.attach_bytes"};
  for (const tuning::Row& row : tuning::table()) {
    if (!row.name.starts_with("node.") || not_here.contains(row.name)) continue;
    EXPECT_TRUE(std::ranges::find(questions(), row.id, &Question::id) != questions().end())
        << row.name;
  }
}

TEST(TuneQuestions, GoByWhatWasFoundBefore) {
  EXPECT_EQ(with_found("node.cma_bytes = 1\n", {{"node.cma_bytes", 9}, {"node.piece_bytes", 4096}}),
            "node.cma_bytes = 1\nnode.piece_bytes = 4096\n");
  EXPECT_EQ(with_found("", {}), "");
}

TEST(TuneQuestions, AskForTheBytesThatTheThresholdSees) {
  EXPECT_EQ(call_bytes({Op::allreduce}, 4096, 4), 4096U);
  EXPECT_EQ(call_bytes({Op::alltoall, Amount::all_blocks}, 4096, 4), 1024U);
  EXPECT_EQ(call_bytes({Op::scatter, Amount::other_blocks}, 4098, 3), 2048U);
  EXPECT_EQ(call_bytes({Op::gather, Amount::half}, 4096, 4), 8192U);
  EXPECT_EQ(call_bytes({Op::allreduce}, 1, 4), 4U);
}

}  // namespace
}  // namespace ropewalk::bench
