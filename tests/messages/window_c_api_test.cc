// Tests windows through the C interface, on ranks as threads.
#include <gtest/gtest.h>

#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "ropewalk/ropewalk.h"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

rw_mpi_comm world() {
  rw_mpi_comm comm = 0;
  EXPECT_EQ(rw_comm_world(&comm), RW_SUCCESS);
  return comm;
}

void on_windows(int ranks, std::size_t bytes, const std::function<void(rw_window*, int)>& body,
                const rw_window_options* options = nullptr) {
  run_ranks(ranks, [&](int rank) {
    rw_window* window = nullptr;
    ASSERT_EQ(rw_window_create(world(), bytes, options, &window), RW_SUCCESS) << rw_last_error();
    body(window, rank);
    EXPECT_EQ(rw_window_fence(window), RW_SUCCESS);
    EXPECT_EQ(rw_window_free(window), RW_SUCCESS) << rw_last_error();
  });
}

TEST(WindowCApi, OverNodesOnlyTheLengthIsKnown) {
  setenv("ROPEWALK_NODES", "1", 1);
  on_windows(2, 64, [](rw_window* window, int rank) {
    const int other = 1 - rank;
    const double sent = rank + 0.5;
    ASSERT_EQ(rw_window_put(window, &sent, sizeof sent, other, 8), RW_SUCCESS);
    ASSERT_EQ(rw_window_flush(window), RW_SUCCESS);
    ASSERT_EQ(rw_window_fence(window), RW_SUCCESS);
    void* memory = nullptr;
    std::size_t bytes = 0;
    EXPECT_EQ(rw_window_memory(window, other, nullptr, &bytes), RW_SUCCESS);
    EXPECT_EQ(bytes, 64U);
    EXPECT_EQ(rw_window_memory(window, other, &memory, nullptr), RW_ERROR_UNSUPPORTED);
    ASSERT_EQ(rw_window_memory(window, rank, &memory, nullptr), RW_SUCCESS);
    EXPECT_EQ(static_cast<double*>(memory)[1], other + 0.5);
  });
  unsetenv("ROPEWALK_NODES");
}

void expect_refused(int code, const std::string& begin) {
  EXPECT_EQ(code, RW_ERROR_ARGUMENT);
  EXPECT_EQ(std::string(rw_last_error()).substr(0, begin.size()), begin);
}

TEST(WindowCApi, PutsGetsAndSignals) {
  on_windows(2, 800, [](rw_window* window, int rank) {
    std::vector<double> data(100, rank + 1.5);
    const int other = 1 - rank;
    ASSERT_EQ(rw_window_put(window, data.data(), 800, other, 0), RW_SUCCESS);
    ASSERT_EQ(rw_window_signal(window, other, 7, 3), RW_SUCCESS);
    ASSERT_EQ(rw_window_wait_signal(window, 7, 3), RW_SUCCESS);
    std::uint64_t count = 0;
    ASSERT_EQ(rw_window_signals(window, 7, &count), RW_SUCCESS);
    EXPECT_EQ(count, 3U);
    void* memory = nullptr;
    std::size_t bytes = 0;
    ASSERT_EQ(rw_window_memory(window, rank, &memory, &bytes), RW_SUCCESS);
    EXPECT_EQ(bytes, 800U);
    EXPECT_EQ(static_cast<double*>(memory)[99], other + 1.5);
    ASSERT_EQ(rw_window_fence(window), RW_SUCCESS);
    ASSERT_EQ(rw_window_get(window, data.data(), 792, other, 8), RW_SUCCESS);
    EXPECT_EQ(data[0], rank + 1.5);
  });
}

TEST(WindowCApi, OperatesAtomically) {
  on_windows(3, 64, [](rw_window* window, int rank) {
    const std::int32_t operands[] = {1, rank};
    for (int turn = 0; turn < 100; ++turn) {
      ASSERT_EQ(rw_window_accumulate(window, operands, 2, RW_INT32, RW_SUM, 0, 8), RW_SUCCESS);
    }
    ASSERT_EQ(rw_window_fence(window), RW_SUCCESS);
    std::int32_t before = 0;
    ASSERT_EQ(rw_window_fetch_and_op(window, nullptr, &before, RW_INT32, RW_NO_OP, 0, 8),
              RW_SUCCESS);
    EXPECT_EQ(before, 300);
    ASSERT_EQ(rw_window_fetch_and_op(window, nullptr, &before, RW_INT32, RW_NO_OP, 0, 12),
              RW_SUCCESS);
    EXPECT_EQ(before, 300);  // 100 (0 + 1 + 2)
    const std::int32_t zero = 0;
    const std::int32_t mine = rank + 10;
    ASSERT_EQ(rw_window_compare_and_swap(window, &zero, &mine, &before, RW_INT32, 1, 0),
              RW_SUCCESS);
    const bool won = before == 0;
    ASSERT_EQ(rw_window_fence(window), RW_SUCCESS);
    ASSERT_EQ(rw_window_get(window, &before, 4, 1, 0), RW_SUCCESS);
    EXPECT_EQ(before == mine, won);  // one rank has won
  });
}

TEST(WindowCApi, ArgumentsAreChecked) {
  on_windows(1, 8, [](rw_window* window, int) {
    std::int64_t value = 1;
    expect_refused(rw_window_put(nullptr, &value, 8, 0, 0), "window: NULL");
    expect_refused(rw_window_put(window, &value, 8, 1, 0), "rank: 1");
    expect_refused(rw_window_get(window, &value, 8, 0, 1), "offset: 8 bytes at 1");
    expect_refused(rw_window_signals(window, 0, nullptr), "out: NULL");
    expect_refused(rw_window_signal(window, 0, 8, 1), "index: signal 8 of 8");
    expect_refused(rw_window_accumulate(window, &value, 1, 3, RW_SUM, 0, 0), "type: 3");
    expect_refused(rw_window_accumulate(window, &value, 1, RW_INT64, 3, 0, 0), "op: 3");
    expect_refused(rw_window_accumulate(window, &value, 1, RW_LONG_DOUBLE, RW_SUM, 0, 0), "type: ");
  });
  EXPECT_EQ(rw_window_free(nullptr), RW_SUCCESS);
}

TEST(WindowCApi, OptionsAreRead) {
  rw_window_options options = RW_WINDOW_OPTIONS_INIT;
  options.signals = 100;
  on_windows(
      2, 0,
      [](rw_window* window, int rank) {
        EXPECT_EQ(rw_window_signal(window, rank, 99, 1), RW_SUCCESS);
      },
      &options);
  run_ranks(2, [&](int rank) {  // what is wrong on one rank is an error on both
    rw_window_options wrong = RW_WINDOW_OPTIONS_INIT;
    if (rank == 1) wrong.size = 3;
    rw_window* window = nullptr;
    EXPECT_EQ(rw_window_create(world(), 8, &wrong, &window), RW_ERROR_ARGUMENT);
    EXPECT_NE(std::string(rw_last_error()).find("options.size: 3"), std::string::npos);
  });
}

}  // namespace
}  // namespace ropewalk::test
