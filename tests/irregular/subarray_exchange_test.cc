// Tests the exchange of parts of arrays on ranks as threads.
#include "ropewalk/subarray_exchange.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "irregular/random_subarrays.hpp"
#include "messages/expect_error.hpp"
#include "ropewalk/ropewalk.h"
#include "support/thread_mpi.hpp"

namespace ropewalk {
namespace {

using test::expect_error;
using test::run_ranks;

TEST(SubarrayExchange, RandomPartsComeWhereTheyBelong) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    run_ranks(ranks, [&](int) {
      EXPECT_EQ(test::random_subarrays(Communicator::world(), 60 + static_cast<unsigned>(ranks), 6),
                "");
    });
  }
}

TEST(SubarrayExchange, OverNodesToo) {
  for (const char* nodes : {"1", "2,3", "round:2"}) {
    setenv("ROPEWALK_NODES", nodes, 1);
    run_ranks(5, [&](int) {
      EXPECT_EQ(test::random_subarrays(Communicator::world(), 9, 4), "") << nodes;
    });
  }
  unsetenv("ROPEWALK_NODES");
}

// Each of two ranks has two rows of four columns, and wants two columns of four rows.
ArrayParts rows() { return {64, {{0, {2, 2}, {32, 8}}, {16, {2, 2}, {32, 8}}}}; }
ArrayParts columns() { return {64, {{0, {2, 2}, {8, 32}}, {16, {2, 2}, {8, 32}}}}; }

TEST(SubarrayExchange, TransposesAMatrix) {
  run_ranks(2, [](int rank) {
    SubarrayExchange exchange(Communicator::world(), sizeof(double), rows(), columns());
    EXPECT_EQ(exchange.bytes(), 64U);
    EXPECT_EQ(exchange.near_bytes(), 32U);
    EXPECT_EQ(exchange.far_bytes(), 0U);
    std::vector<double> matrix;
    for (int i = 0; i < 8; ++i) matrix.push_back(8 * rank + i);
    exchange.exchange(matrix.data());
    const auto* transposed = reinterpret_cast<const double*>(exchange.data());
    for (int column = 0; column < 2; ++column) {
      for (int row = 0; row < 4; ++row) {
        EXPECT_EQ(transposed[column * 4 + row], 4 * row + 2 * rank + column);
      }
    }
    expect_error(ErrorCode::argument, "array: null", [&] { exchange.exchange(nullptr); });
  });
}

TEST(SubarrayExchange, WhatIsWrongOnOneRankIsAnErrorOnAll) {
  const auto refused = [](const std::string& text,
                          const std::function<void(ArrayParts&, ArrayParts&)>& change,
                          std::size_t element_bytes = 8) {
    run_ranks(2, [&](int rank) {
      ArrayParts sent = rows();
      ArrayParts received = columns();
      if (rank == 1) change(sent, received);
      expect_error(ErrorCode::argument, text, [&] {
        const SubarrayExchange made(Communicator::world(), rank == 1 ? element_bytes : 8, sent,
                                    received);
      });
    });
  };
  refused("sent.parts: 1, expected one for each of 2 ranks",
          [](ArrayParts& sent, ArrayParts&) { sent.parts.pop_back(); });
  refused("sent.parts[1]: ends outside of the array of 63 bytes",
          [](ArrayParts& sent, ArrayParts&) { sent.bytes = 63; });
  refused("received.parts[0]: ends outside of the array of 64 bytes",
          [](ArrayParts&, ArrayParts& received) { received.parts[0].strides[0] = SIZE_MAX; });
  refused("sent.parts[0].strides: 1, expected one for each of 2 dimensions",
          [](ArrayParts& sent, ArrayParts&) { sent.parts[0].strides = {8}; });
  refused("received.parts[0].extents: 7 dimensions, expected at most 6",
          [](ArrayParts&, ArrayParts& received) {
            received.parts[0].extents.assign(7, 1);
            received.parts[0].strides.assign(7, 8);
          });
  refused("parts: rank 1 sends 1 x 2 to rank 0, which expects 2 x 2",
          [](ArrayParts& sent, ArrayParts&) {
            sent.parts[0].extents = {1, 2};
          });
  refused(
      "element_bytes: 8 on rank 0, 4 on rank 1", [](ArrayParts&, ArrayParts&) {}, 4);
  refused(
      "element_bytes: 0, expected 1 or more", [](ArrayParts&, ArrayParts&) {}, 0);
}

TEST(SubarrayExchange, StaysReadableWhenItIsClosed) {
  run_ranks(2, [](int rank) {
    SubarrayExchange exchange(Communicator::world(), sizeof(double), rows(), columns());
    const std::vector<double> matrix(8, 1 + rank);
    exchange.exchange(matrix.data());
    exchange.close();
    EXPECT_EQ(reinterpret_cast<const double*>(exchange.data())[2], 2);
    expect_error(ErrorCode::argument, "subarray exchange: closed",
                 [&] { exchange.exchange(matrix.data()); });
  });
}

TEST(SubarrayExchange, InC) {
  run_ranks(2, [](int rank) {
    rw_mpi_comm comm = 0;
    ASSERT_EQ(rw_comm_world(&comm), RW_SUCCESS);
    const std::size_t extents[] = {2, 2};
    const std::size_t by_rows[] = {32, 8};
    const std::size_t by_columns[] = {8, 32};
    const rw_subarray sent[] = {{0, 2, extents, by_rows}, {16, 2, extents, by_rows}};
    const rw_subarray received[] = {{0, 2, extents, by_columns}, {16, 2, extents, by_columns}};
    rw_subarray_exchange* exchange = nullptr;
    ASSERT_EQ(rw_subarray_exchange_create(comm, 8, 64, sent, 64, received, &exchange), RW_SUCCESS)
        << rw_last_error();
    std::vector<double> matrix;
    for (int i = 0; i < 8; ++i) matrix.push_back(8 * rank + i);
    ASSERT_EQ(rw_subarray_exchange_run(exchange, matrix.data()), RW_SUCCESS);
    void* data = nullptr;
    std::size_t bytes = 0;
    ASSERT_EQ(rw_subarray_exchange_array(exchange, &data, &bytes), RW_SUCCESS);
    EXPECT_EQ(bytes, 64U);
    for (int i = 0; i < 8; ++i) {
      EXPECT_EQ(static_cast<double*>(data)[i], 4 * (i % 4) + 2 * rank + i / 4);
    }
    std::size_t near_bytes = 0;
    ASSERT_EQ(rw_subarray_exchange_bytes(exchange, &near_bytes, nullptr), RW_SUCCESS);
    EXPECT_EQ(near_bytes, 32U);
    EXPECT_EQ(rw_subarray_exchange_run(exchange, nullptr), RW_ERROR_ARGUMENT);
    EXPECT_EQ(rw_subarray_exchange_free(exchange), RW_SUCCESS);

    const rw_subarray nowhere[] = {{0, 2, extents, nullptr}, {0, 0, nullptr, nullptr}};
    const rw_subarray* wrong = rank == 0 ? nowhere : sent;
    EXPECT_EQ(rw_subarray_exchange_create(comm, 8, 64, wrong, 64, received, &exchange),
              RW_ERROR_ARGUMENT);
    EXPECT_NE(std::string(rw_last_error()).find("sent[0].strides: NULL"), std::string::npos);
  });
  EXPECT_EQ(rw_subarray_exchange_free(nullptr), RW_SUCCESS);
  EXPECT_EQ(rw_subarray_exchange_run(nullptr, nullptr), RW_ERROR_ARGUMENT);
}

}  // namespace
}  // namespace ropewalk
