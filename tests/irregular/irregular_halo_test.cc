// Tests the exchange along lists of neighbors on ranks as threads.
#include "ropewalk/irregular_halo.hpp"

#include <gtest/gtest.h>

#include <cstdlib>
#include <functional>
#include <numeric>
#include <string>
#include <vector>

#include "irregular/random_exchanges.hpp"
#include "messages/expect_error.hpp"
#include "ropewalk/ropewalk.h"
#include "support/thread_mpi.hpp"

namespace ropewalk {
namespace {

using test::expect_error;
using test::run_ranks;

TEST(IrregularHalo, RandomExchangesAreWhatTheListsSay) {
  for (const int ranks : {1, 2, 3, 5, 8}) {
    run_ranks(ranks, [&](int) {
      EXPECT_EQ(test::random_exchanges(Communicator::world(), 40 + static_cast<unsigned>(ranks), 8),
                "");
    });
  }
}

TEST(IrregularHalo, OverNodesToo) {
  for (const char* nodes : {"1", "2,3", "round:2"}) {
    setenv("ROPEWALK_NODES", nodes, 1);
    run_ranks(5, [&](int) {
      EXPECT_EQ(test::random_exchanges(Communicator::world(), 7, 6), "") << nodes;
    });
  }
  unsetenv("ROPEWALK_NODES");
}

// Each rank owns ten rows of a ring and needs the two on either side.
std::vector<std::int64_t> ring_ghosts(int rank, int ranks) {
  const std::int64_t all = 10 * ranks;
  const std::int64_t first = 10 * rank;
  return {(first + all - 2) % all, (first + all - 1) % all, (first + 11) % all, (first + 10) % all};
}

TEST(IrregularHalo, RowsTellTheNeighbors) {
  run_ranks(4, [](int rank) {
    const std::vector<std::int64_t> ghosts = ring_ghosts(rank, 4);
    const auto neighbors = neighbors_by_rows(Communicator::world(), 10, ghosts);
    ASSERT_EQ(neighbors.size(), 2U);
    IrregularHalo halo(Communicator::world(), neighbors, 14, sizeof(double));
    EXPECT_EQ(halo.near_bytes(), 4 * sizeof(double));
    EXPECT_EQ(halo.far_bytes(), 0U);
    std::vector<double> x(14, -1);
    std::iota(x.begin(), x.begin() + 10, 10.0 * rank);
    halo.exchange(x.data());
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(x[10 + i], static_cast<double>(ghosts[i]));
    halo.combine(x.data(), ElementType::float64, ReductionOp::sum);
    for (int i = 0; i < 10; ++i) {  // rows 0, 1, 8 and 9 are ghosts of one other rank each
      const double one = 10.0 * rank + i;
      EXPECT_EQ(x[static_cast<std::size_t>(i)], i < 2 || i > 7 ? 2 * one : one);
    }
  });
}

TEST(IrregularHalo, WhatIsWrongOnOneRankIsAnErrorOnAll) {
  const auto refused = [](const std::string& text, const std::function<Neighbor(int)>& list) {
    run_ranks(2, [&](int rank) {
      try {
        const IrregularHalo halo(Communicator::world(), {list(rank)}, 4, 8);
        ADD_FAILURE() << "no error: " << text;
      } catch (const Error& error) {
        EXPECT_EQ(error.code(), ErrorCode::argument);
        EXPECT_NE(std::string(error.what()).find(text), std::string::npos) << error.what();
      }
    });
  };
  refused("neighbors[0].send[1]: 4, expected an index below the 4 elements", [](int rank) {
    return Neighbor{1 - rank, {0, rank == 0 ? 4 : 1}, {2, 3}};
  });
  refused("neighbors[0].receive[0]: -1", [](int rank) {
    return Neighbor{1 - rank, {0}, {rank == 0 ? -1 : 1}};
  });
  refused("element 3 is received twice", [](int rank) {
    return Neighbor{1 - rank, {0, 1}, {3, rank == 0 ? 2 : 3}};
  });
  refused("neighbors[0].rank: 2, expected 0 to 1", [](int rank) {
    return Neighbor{rank == 0 ? 2 : 0, {}, {}};
  });
  refused("rank 1 lists rank 0, which does not list it", [](int) { return Neighbor{0, {}, {}}; });
  refused("sends 2 elements to rank 1, which expects 1", [](int rank) {
    return Neighbor{1 - rank,
                    {0, 1},
                    rank == 0 ? std::vector<std::int64_t>{2, 3} : std::vector<std::int64_t>{2}};
  });
}

TEST(IrregularHalo, SizesAndCallsAreChecked) {
  const auto argument = ErrorCode::argument;
  run_ranks(2, [&](int rank) {
    const Communicator world = Communicator::world();
    const std::vector<Neighbor> both = {{1 - rank, {0}, {1}}};
    expect_error(argument, "element_bytes: from 4 to 8",
                 [&] { IrregularHalo(world, both, 2, rank == 0 ? 4 : 8); });
    expect_error(argument, "neighbors[1].rank: ", [&] {
      IrregularHalo(world, {both[0], both[0]}, 2, 8);
    });
    expect_error(argument, "ghosts[1]: 7 is listed twice", [&] {
      const std::vector<std::int64_t> twice = {7, 7};
      neighbors_by_rows(world, 5, rank == 0 ? twice : std::vector<std::int64_t>{});
    });
    IrregularHalo halo(world, both, 2, 8);
    std::vector<std::int64_t> x = {rank, 9};
    expect_error(argument, "array: null", [&] { halo.start(nullptr); });
    expect_error(argument, "op: bxor is not defined",
                 [&] { halo.combine(x.data(), ElementType::float64, ReductionOp::bxor); });
    expect_error(argument, "type: complex_float64 of 16 bytes",
                 [&] { halo.combine(x.data(), ElementType::complex_float64, ReductionOp::sum); });
    halo.start(x.data());
    expect_error(argument, "irregular halo: started while", [&] { halo.start(x.data()); });
    halo.wait();
    halo.wait();
    EXPECT_TRUE(halo.test());
    EXPECT_EQ(x[1], 1 - rank);
  });
}

TEST(IrregularHaloCApi, ExchangesAndChecks) {
  run_ranks(3, [](int rank) {
    rw_mpi_comm comm = 0;
    ASSERT_EQ(rw_comm_world(&comm), RW_SUCCESS);
    const std::vector<std::int64_t> ghosts = ring_ghosts(rank, 3);
    rw_irregular_halo* halo = nullptr;
    ASSERT_EQ(rw_irregular_halo_create_by_rows(comm, 10, 4, ghosts.data(), 4, &halo), RW_SUCCESS)
        << rw_last_error();
    std::vector<std::int32_t> x(14);
    std::iota(x.begin(), x.end(), 10 * rank);
    ASSERT_EQ(rw_irregular_halo_start(halo, x.data()), RW_SUCCESS);
    int done = 0;
    while (done == 0) ASSERT_EQ(rw_irregular_halo_test(halo, &done), RW_SUCCESS);
    ASSERT_EQ(rw_irregular_halo_wait(halo), RW_SUCCESS);
    for (std::size_t i = 0; i < 4; ++i) EXPECT_EQ(x[10 + i], ghosts[i]);
    ASSERT_EQ(rw_irregular_halo_combine(halo, x.data(), RW_INT32, RW_MAX), RW_SUCCESS);
    std::size_t near_bytes = 0;
    ASSERT_EQ(rw_irregular_halo_bytes(halo, &near_bytes, nullptr), RW_SUCCESS);
    EXPECT_EQ(near_bytes, 16U);
    EXPECT_EQ(rw_irregular_halo_exchange(halo, nullptr), RW_ERROR_ARGUMENT);
    EXPECT_EQ(rw_irregular_halo_free(halo), RW_SUCCESS);

    const std::int64_t index = 0;
    const rw_neighbor self = {rank, 1, &index, 1, rank == 1 ? nullptr : &index};
    EXPECT_EQ(rw_irregular_halo_create(comm, 1, &self, 1, 8, &halo), RW_ERROR_ARGUMENT);
    EXPECT_NE(std::string(rw_last_error()).find("neighbor[0].receive: NULL"), std::string::npos);
  });
  EXPECT_EQ(rw_irregular_halo_free(nullptr), RW_SUCCESS);
}

}  // namespace
}  // namespace ropewalk
