// Tests the C interface of the collectives on ranks as threads.
#include <gtest/gtest.h>

#include <cstring>
#include <vector>

#include "mpi/datatypes.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/ropewalk.h"
#include "ropewalk/types.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

class Comm {
 public:
  Comm() { EXPECT_EQ(rw_comm_create(mpi::comm_world().value, &comm_), RW_SUCCESS); }
  ~Comm() { EXPECT_EQ(rw_comm_free(comm_), RW_SUCCESS); }
  Comm(const Comm&) = delete;
  Comm& operator=(const Comm&) = delete;
  operator rw_comm*() const { return comm_; }

 private:
  rw_comm* comm_ = nullptr;
};

constexpr int ranks = 3;
constexpr std::size_t count = 5000;  // beyond the slots

TEST(CollectivesInC, Reductions) {
  run_ranks(ranks, [](int rank) {
    const Comm comm;
    int direct = 0;
    ASSERT_EQ(rw_comm_direct(comm, &direct), RW_SUCCESS);
    EXPECT_EQ(direct, 1);
    std::vector<double> send(count, rank + 1.0);
    std::vector<double> result(count, -1);
    ASSERT_EQ(rw_allreduce(send.data(), result.data(), count, RW_FLOAT64, RW_SUM, comm),
              RW_SUCCESS);
    EXPECT_EQ(result[count - 1], 6);
    ASSERT_EQ(rw_reduce(send.data(), result.data(), count, RW_FLOAT64, RW_PROD, 1, comm),
              RW_SUCCESS);
    EXPECT_EQ(result[7], 6);  // at the root the product, elsewhere still the sum of before
    ASSERT_EQ(rw_scan(send.data(), result.data(), count, RW_FLOAT64, RW_MAX, comm), RW_SUCCESS);
    EXPECT_EQ(result[0], rank + 1);
    ASSERT_EQ(rw_exscan(send.data(), result.data(), count, RW_FLOAT64, RW_MAX, comm), RW_SUCCESS);
    EXPECT_EQ(result[0], rank == 0 ? 1 : rank);
    std::vector<double> blocks(count * ranks, 1.0);
    ASSERT_EQ(
        rw_reduce_scatter_block(blocks.data(), result.data(), count, RW_FLOAT64, RW_SUM, comm),
        RW_SUCCESS);
    EXPECT_EQ(result[count - 1], ranks);
    const std::size_t counts[ranks] = {1, 0, 2};
    ASSERT_EQ(rw_reduce_scatter(RW_IN_PLACE, blocks.data(), counts, RW_FLOAT64, RW_SUM, comm),
              RW_SUCCESS);
    EXPECT_EQ(blocks[0], rank == 1 ? 1 : ranks);
  });
}

TEST(CollectivesInC, HandlesOfTheMpiMeanTheSame) {
  run_ranks(ranks, [](int rank) {
    const Comm comm;
    const auto type = static_cast<rw_type>(mpi::datatype(ElementType::int32).value);
    const auto op = static_cast<rw_op>(mpi::op(ReductionOp::min).value);
    std::vector<std::int32_t> values(count, 10 - rank);
    ASSERT_EQ(rw_allreduce(RW_IN_PLACE, values.data(), count, type, op, comm), RW_SUCCESS)
        << rw_last_error();
    EXPECT_EQ(values[count / 2], 8);
    ASSERT_EQ(rw_allreduce(RW_IN_PLACE, values.data(), count, RW_INT32, op, comm), RW_SUCCESS);
  });
}

TEST(CollectivesInC, Movements) {
  run_ranks(ranks, [](int rank) {
    const Comm comm;
    std::vector<std::int16_t> mine(count, static_cast<std::int16_t>(rank));
    std::vector<std::int16_t> all(count * ranks);
    ASSERT_EQ(rw_allgather(mine.data(), all.data(), count, RW_INT16, comm), RW_SUCCESS);
    EXPECT_EQ(all[2 * count], 2);
    std::vector<std::int16_t> swapped(count * ranks);
    ASSERT_EQ(rw_alltoall(all.data(), swapped.data(), count, RW_INT16, comm), RW_SUCCESS);
    EXPECT_EQ(swapped[2 * count], rank);
    ASSERT_EQ(rw_bcast(mine.data(), count, RW_INT16, 2, comm), RW_SUCCESS);
    EXPECT_EQ(mine[9], 2);
    ASSERT_EQ(
        rw_scatter(all.data(), rank == 0 ? RW_IN_PLACE : mine.data(), count, RW_INT16, 0, comm),
        RW_SUCCESS);
    EXPECT_EQ(mine[0], rank == 0 ? 2 : rank);
    const std::size_t counts[ranks] = {2, 0, 1};
    const std::size_t places[ranks] = {4, 2, 0};
    std::vector<std::int16_t> some(6, -1);
    ASSERT_EQ(rw_gatherv(mine.data(), counts[rank], some.data(), counts, places, RW_INT16, 1, comm),
              RW_SUCCESS);
    if (rank == 1) {
      EXPECT_EQ(some, (std::vector<std::int16_t>{2, -1, -1, -1, 2, 2}));
    }
    ASSERT_EQ(rw_barrier(comm), RW_SUCCESS);
  });
}

TEST(CollectivesInC, Nonblocking) {
  run_ranks(ranks, [](int rank) {
    const Comm comm;
    std::vector<float> values(count, static_cast<float>(rank));
    rw_request* requests[2] = {};
    ASSERT_EQ(
        rw_iallreduce(RW_IN_PLACE, values.data(), count, RW_FLOAT32, RW_SUM, comm, &requests[0]),
        RW_SUCCESS);
    ASSERT_EQ(rw_ibarrier(comm, &requests[1]), RW_SUCCESS);
    ASSERT_EQ(rw_wait(&requests[0]), RW_SUCCESS);
    EXPECT_EQ(requests[0], nullptr);
    EXPECT_EQ(values[0], 3);
    ASSERT_EQ(rw_wait(&requests[1]), RW_SUCCESS);
    int done = 0;
    ASSERT_EQ(rw_test(&requests[1], &done), RW_SUCCESS);  // of no request: complete
    EXPECT_EQ(done, 1);
  });
}

TEST(CollectivesInC, BadArgumentsAreNamedOnEveryRank) {
  run_ranks(ranks, [](int rank) {
    const Comm comm;
    float value = 1;
    float result = 0;
    const auto expect = [&](int code, const char* argument) {
      EXPECT_EQ(code, RW_ERROR_ARGUMENT);
      EXPECT_EQ(std::strncmp(rw_last_error(), argument, std::strlen(argument)), 0)
          << rw_last_error();
    };
    expect(rw_allreduce(&value, &result, 1, RW_FIRST_TYPE + 900, RW_SUM, comm), "type");
    expect(rw_allreduce(&value, &result, 1, RW_FLOAT32, RW_FIRST_OP + 900, comm), "op");
    expect(rw_allreduce(&value, &result, 1, RW_FLOAT32, RW_BXOR, comm), "op");
    expect(rw_bcast(&value, 1, RW_FIRST_TYPE + element_type_count, 0, comm), "type");
    expect(rw_bcast(&value, 1, RW_FLOAT32, ranks, comm), "root");
    expect(rw_reduce(&value, &result, 1, RW_FLOAT32, RW_SUM, -1, comm), "root");
    expect(rw_allreduce(&value, &result, 1, RW_FLOAT32, RW_SUM, nullptr), "comm");
    // One rank's mistake is everybody's error.
    const int code = rw_allreduce(&value, &result, 1, rank == 1 ? RW_FIRST_TYPE + 900 : RW_FLOAT32,
                                  RW_SUM, comm);
    EXPECT_EQ(code, RW_ERROR_ARGUMENT);
    // And the communicator is as good as before.
    EXPECT_EQ(rw_allreduce(&value, &result, 1, RW_FLOAT32, RW_SUM, comm), RW_SUCCESS);
    EXPECT_EQ(result, 3);
  });
}

// One rank's mistake is everybody's error: none waits in MPI for a rank that has returned.
TEST(CollectivesInC, NoPlaceForWhatIsMadeIsAnErrorOnEveryRank) {
  run_ranks(ranks, [](int rank) {
    rw_mpi_comm world = 0;
    ASSERT_EQ(rw_comm_world(&world), RW_SUCCESS);
    rw_comm* comm = nullptr;
    rw_endpoints* endpoints = nullptr;
    rw_team* team = nullptr;
    const auto refuses = [](int code) {
      EXPECT_EQ(code, RW_ERROR_ARGUMENT);
      EXPECT_NE(std::strstr(rw_last_error(), "out: NULL"), nullptr) << rw_last_error();
    };
    refuses(rw_comm_create(world, rank == 1 ? nullptr : &comm));
    refuses(rw_endpoints_create(world, 1, 0, rank == 1 ? nullptr : &endpoints));
    refuses(rw_team_create(world, 1, 0, rank == 1 ? nullptr : &team));
  });
}

}  // namespace
}  // namespace ropewalk::test
