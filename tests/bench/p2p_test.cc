// Options, exchanges, contents and tables of the benchmark of messages between two ranks.
#include <gtest/gtest.h>

#include <vector>

#include "bench/command_line.hpp"
#include "p2p/exchange.hpp"
#include "p2p/options.hpp"
#include "p2p/tables.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;

P2pOptions parsed(std::vector<std::string> words) {
  return parse_words<P2pOptions>("ropewalk-bench-p2p", std::move(words));
}

std::string refusal(const std::vector<std::string>& words) {
  return refusal_of([&] { parsed(words); });
}

TEST(P2p, DefaultSizesFitTheMode) {
  const P2pOptions options = parsed({});
  EXPECT_EQ(options.mode_list.size(), 4U);
  EXPECT_EQ(sizes_of(options, Mode::latency).front(), 0U);
  EXPECT_EQ(sizes_of(options, Mode::latency).back(), 4 * MiB);
  EXPECT_EQ(sizes_of(options, Mode::bandwidth).front(), 1U);
  EXPECT_EQ(sizes_of(options, Mode::bidirectional).back(), 64 * MiB);
  EXPECT_EQ(sizes_of(options, Mode::rate).back(), 4 * KiB);
  const P2pOptions given = parsed({"--sizes", "0,64M", "--mode", "rate,latency"});
  EXPECT_EQ(sizes_of(given, Mode::rate), (std::vector<std::size_t>{0, 64 * MiB}));
  EXPECT_EQ(given.mode_list, (std::vector<Mode>{Mode::rate, Mode::latency}));
  EXPECT_EQ(cases(given).size(), 2U * 2 * 2);  // buffers, modes, sizes
}

TEST(P2p, QuickIsShortUnlessToldOtherwise) {
  EXPECT_EQ(parsed({"--quick"}).buffer_list.size(), 1U);
  EXPECT_EQ(parsed({"--quick"}).mode_list.size(), 2U);
  EXPECT_EQ(parsed({"--quick", "--mode", "rate", "--buffers", "hot,rewritten"}).buffer_list.size(),
            2U);
}

TEST(P2p, MechanismsAreThoseThatCanBeForced) {
  EXPECT_TRUE(parsed({}).mechanism_list.empty());
  EXPECT_EQ(parsed({"--mechanism", "all"}).mechanism_list.size(), 5U);
  EXPECT_EQ(parsed({"--mechanism", "both,pipeline"}).mechanism_list,
            (std::vector<Mechanism>{Mechanism::both, Mechanism::pipeline}));
}

TEST(P2p, RefusalsNameTheOption) {
  EXPECT_NE(refusal({"--sizes", "2G"}).find("--sizes"), std::string::npos);
  EXPECT_NE(refusal({"--sizes", "8,x"}).find("--sizes"), std::string::npos);
  EXPECT_NE(refusal({"--mode", "pingpong"}).find("--mode"), std::string::npos);
  EXPECT_NE(refusal({"--mechanism", "inlined"}).find("--mechanism"), std::string::npos);
  EXPECT_NE(refusal({"--memory", "heap"}).find("--memory"), std::string::npos);
  EXPECT_NE(refusal({"--buffers", "cold"}).find("--buffers"), std::string::npos);
}

TEST(P2p, WindowsAreThoseOfOsuWhileTheyFit) {
  const P2pOptions options = parsed({});
  EXPECT_EQ(hot_window(options, Mode::latency, 8), 1);
  EXPECT_EQ(hot_window(options, Mode::bandwidth, 0), 64);
  EXPECT_EQ(hot_window(options, Mode::bandwidth, 4 * MiB), 64);
  EXPECT_EQ(hot_window(options, Mode::bandwidth, 64 * MiB), 4);
  EXPECT_EQ(hot_window(options, Mode::bandwidth, 1024 * MiB), 1);
  EXPECT_EQ(hot_window(options, Mode::rate, 8), 8);
  EXPECT_EQ(apart_window(options, Mode::bandwidth, 8), 64);
  EXPECT_EQ(apart_window(options, Mode::bandwidth, MiB), 4);
  EXPECT_EQ(apart_window(options, Mode::bidirectional, 64 * MiB), 1);
  EXPECT_EQ(hot_window(parsed({"--window", "16"}), Mode::rate, 8), 16);
  EXPECT_EQ(buffer_bytes(options), 64 * MiB);
  EXPECT_EQ(buffer_bytes(parsed({"--sizes", "100"})), 64U * 128);
}

// Writes down what a rank does.
struct Recorder {
  std::string done;
  void send(const std::byte*, std::size_t, int to) { done += "s" + std::to_string(to); }
  void receive(std::byte*, std::size_t, int from) { done += "r" + std::to_string(from); }
  void start_send(const std::byte*, std::size_t, int to) { done += "S" + std::to_string(to); }
  void start_receive(std::byte*, std::size_t, int from) { done += "R" + std::to_string(from); }
  void wait_all() { done += "w"; }
};

std::string done_by(Mode mode, int rank) {
  P2pRun run;
  run.mode = mode;
  run.rank = rank;
  run.window = mode == Mode::latency ? 1 : 2;
  Recorder recorder;
  exchange(recorder, run);
  return recorder.done;
}

TEST(P2p, ExchangesAreThoseOfOsu) {
  EXPECT_EQ(done_by(Mode::latency, 2), "s3r3");
  EXPECT_EQ(done_by(Mode::latency, 3), "r2s2");
  EXPECT_EQ(done_by(Mode::bandwidth, 0), "S1S1wr1");
  EXPECT_EQ(done_by(Mode::rate, 1), "R0R0ws0");
  EXPECT_EQ(done_by(Mode::bidirectional, 0), "R1R1S1S1w");
  EXPECT_EQ(done_by(Mode::bidirectional, 1), "R0R0S0S0w");
}

// What rank 0 has written is right for rank 1, at the place and in the iteration it is for.
TEST(P2p, CheckFindsWrongBytes) {
  constexpr std::size_t bytes = 100;
  std::vector<std::byte> memory(3 * apart_stride(bytes));
  P2pRun from;
  from.mode = Mode::bandwidth;
  from.bytes = bytes;
  from.window = 3;
  from.apart = true;
  from.serial = 7;
  from.send = memory.data();
  P2pRun to = from;
  to.rank = 1;
  to.receive = memory.data();
  write_messages(from, 2);
  EXPECT_EQ(check_messages(to, 2), "");
  EXPECT_NE(check_messages(to, 1), "");  // of an earlier iteration
  memory[2 * apart_stride(bytes) + 98] ^= std::byte{1};
  EXPECT_NE(check_messages(to, 2).find("byte 96 of message 2"), std::string::npos);
  EXPECT_EQ(check_messages(from, 2), "");  // who only sends has nothing to check
}

// The writing and the meeting are not timed, and each iteration is checked.
TEST(P2p, ApartIterationsAreWrittenMetAndChecked) {
  std::vector<std::byte> memory(64);
  P2pRun run;
  run.mode = Mode::bidirectional;
  run.bytes = 64;
  run.apart = true;
  run.iterations = 3;
  run.send = memory.data();
  run.receive = memory.data();
  int meetings = 0;
  const P2pSample sample = timed(
      run, [&] { ++meetings; }, [] {});
  EXPECT_EQ(meetings, 6);
  EXPECT_NE(sample.wrong, "");  // its own bytes, not those of rank 1
}

P2pResult result(Mode mode) {
  P2pResult made(P2pCase{"arena", "hot", mode, 1000});
  made.plain.us = {4, 6, 5};
  made.choice.us = {2, 2.5, 3};
  made.limit_us = 1;
  made.path = Mechanism::receiver;
  return made;
}

TEST(P2p, RatesCountPairsAndDirections) {
  const P2pContext four{4, "MPI", {}};
  EXPECT_DOUBLE_EQ(p2p_mb_per_s(four, result(Mode::bandwidth), 2.5), 800);
  EXPECT_DOUBLE_EQ(p2p_mb_per_s(four, result(Mode::bidirectional), 2.5), 1600);
  EXPECT_DOUBLE_EQ(messages_per_s(four, result(Mode::rate), 2.5), 800000);
  EXPECT_DOUBLE_EQ(messages_per_s(four, result(Mode::rate), 0), 0);
}

TEST(P2p, RowsSayWhichMechanismWasBest) {
  const P2pContext context{2, "MPI", {{"arena", {}}}};
  P2pResult one = result(Mode::bandwidth);
  EXPECT_EQ(rows(context, one).size(), 1U);
  EXPECT_FALSE(rows(context, one).front().contains("best_mechanism"));
  one.forced[Mechanism::both].us = {2};
  one.forced[Mechanism::sender].us = {3};
  const std::vector<Json> all = rows(context, one);
  ASSERT_EQ(all.size(), 3U);
  EXPECT_EQ(all[0]["mechanism"], "choice");
  EXPECT_EQ(all[0]["best_mechanism"], "both");
  EXPECT_EQ(all[0]["best_ratio"], 1.25);
  EXPECT_EQ(all[0]["ratio"], 2.0);
  EXPECT_EQ(all[0]["limit_ratio"], 2.5);
  EXPECT_FALSE(all[1].contains("plain_us"));  // or --against would join it as well
  EXPECT_NE(summary({one}).find("at most 1.25 x the best mechanism"), std::string::npos);
  one.forced[Mechanism::both].us = {2.6};
  EXPECT_EQ(best_mechanism(one).mechanism, Mechanism::receiver);  // the choice itself
}

TEST(P2p, TablesSayWhatIsWrong) {
  const P2pContext context{2, "MPI", {{"arena", {}}}};
  P2pResult one = result(Mode::latency);
  EXPECT_EQ(table(context, {one}).find("WRONG"), std::string::npos);
  one.wrong = "byte 0";
  EXPECT_NE(table(context, {one}).find("WRONG"), std::string::npos);
  EXPECT_NE(summary({one}).find("RECEIVED DATA WRONG"), std::string::npos);
  EXPECT_EQ(rows(context, one).front()["wrong"], "byte 0");
}

}  // namespace
}  // namespace ropewalk::bench
