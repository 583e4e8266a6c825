// The wrappers of point-to-point calls, on ranks as threads.
#include <gtest/gtest.h>

#include <numeric>
#include <thread>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/error.hpp"
#include "support/thread_mpi.hpp"

namespace {

using namespace ropewalk;
using test::run_ranks;
using test::RunOptions;

std::vector<char> pattern(std::size_t bytes, int seed) {
  std::vector<char> data(bytes);
  for (std::size_t i = 0; i < bytes; ++i) data[i] = static_cast<char>(i * 7 + seed);
  return data;
}

class Sizes : public testing::TestWithParam<std::size_t> {};  // below and above the eager limit

TEST_P(Sizes, BlockingRingDeliversAndCounts) {
  const std::size_t bytes = GetParam();
  run_ranks(4, [bytes](int rank) {
    const mpi::Comm world = mpi::comm_world();
    const int next = (rank + 1) % 4;
    const int previous = (rank + 3) % 4;
    const std::vector<char> mine = pattern(bytes, rank);
    std::vector<char> got(bytes + 8);
    mpi::Request request = mpi::isend(mine.data(), bytes, next, 3, world);
    const mpi::Status status = mpi::receive(got.data(), bytes + 8, previous, 3, world);
    mpi::wait(request);
    EXPECT_EQ(request, mpi::request_null());
    EXPECT_EQ(status.source, previous);
    EXPECT_EQ(status.tag, 3);
    EXPECT_EQ(status.bytes, static_cast<std::int64_t>(bytes));
    got.resize(bytes);
    EXPECT_EQ(got, pattern(bytes, previous));
  });
}
INSTANTIATE_TEST_SUITE_P(Eager, Sizes, testing::Values(0, 1, 1024));
INSTANTIATE_TEST_SUITE_P(Rendezvous, Sizes, testing::Values(1025, 100000));

TEST(Messages, KeepOrderWithinSourceAndTagAndMatchByTag) {
  run_ranks(2, [](int rank) {
    const mpi::Comm world = mpi::comm_world();
    if (rank == 0) {
      for (int i = 0; i < 10; ++i) mpi::send(&i, sizeof i, 1, i % 2, world);
      return;
    }
    for (int tag : {1, 0}) {
      for (int i = tag; i < 10; i += 2) {
        int value = -1;
        mpi::receive(&value, sizeof value, 0, tag, world);
        EXPECT_EQ(value, i);
      }
    }
  });
}

TEST(Messages, WildcardsReceiveFromEveryone) {
  run_ranks(3, [](int rank) {
    const mpi::Comm world = mpi::comm_world();
    if (rank != 0) return mpi::send(&rank, sizeof rank, 0, 10 + rank, world);
    int sum = 0;
    for (int i = 0; i < 2; ++i) {
      int value = 0;
      const mpi::Status status =
          mpi::receive(&value, sizeof value, mpi::any_source(), mpi::any_tag(), world);
      EXPECT_EQ(status.source, value);
      EXPECT_EQ(status.tag, 10 + value);
      sum += value;
    }
    EXPECT_EQ(sum, 3);
  });
}

TEST(Messages, ManyRequestsCompleteTogether) {
  run_ranks(2, [](int rank) {
    constexpr int n = 77;  // more than two batches
    const mpi::Comm world = mpi::comm_world();
    std::vector<int> out(n), in(n, -1);
    std::iota(out.begin(), out.end(), rank * 1000);
    std::vector<mpi::Request> requests;
    for (int i = 0; i < n; ++i) {
      requests.push_back(mpi::ireceive(&in[i], sizeof(int), 1 - rank, i, world));
    }
    for (int i = n - 1; i >= 0; --i) {
      requests.push_back(mpi::isend(&out[i], sizeof(int), 1 - rank, i, world));
    }
    if (rank == 0) {
      mpi::wait_all(requests);
    } else {
      while (!mpi::test_all(requests)) std::this_thread::yield();
    }
    for (int i = 0; i < n; ++i) EXPECT_EQ(in[i], (1 - rank) * 1000 + i);
    for (const mpi::Request& request : requests) EXPECT_EQ(request, mpi::request_null());
  });
}

TEST(Messages, SendAboveTheEagerLimitWaitsForItsReceiver) {
  run_ranks(2, [](int rank) {
    const mpi::Comm world = mpi::comm_world();
    std::vector<char> data = pattern(5000, 1);
    if (rank == 0) {
      mpi::Request request = mpi::isend(data.data(), data.size(), 1, 0, world);
      EXPECT_FALSE(mpi::test(request));  // rank 1 receives after the barrier only
      mpi::barrier(world);
      mpi::wait(request);
    } else {
      mpi::barrier(world);
      EXPECT_TRUE(mpi::iprobe(0, 0, world));
      EXPECT_FALSE(mpi::iprobe(0, 1, world));
      mpi::receive(data.data(), data.size(), 0, 0, world);
    }
  });
}

TEST(Messages, CancelTakesAReceiveBack) {
  run_ranks(1, [](int) {
    int value = 7;
    mpi::Request request = mpi::ireceive(&value, sizeof value, 0, 0, mpi::comm_world());
    mpi::cancel(request);
    EXPECT_EQ(request, mpi::request_null());
    mpi::cancel(request);
    EXPECT_EQ(value, 7);
  });
}

TEST(Messages, ProcNullDoesNothing) {
  run_ranks(1, [](int) {
    mpi::send(nullptr, 0, mpi::proc_null(), 0, mpi::comm_world());
    EXPECT_EQ(mpi::receive(nullptr, 0, mpi::proc_null(), 0, mpi::comm_world()).bytes, 0);
  });
}

TEST(Messages, ErrorsCarryTheFunctionAndTheTextOfMpi) {
  run_ranks(1, [](int) {
    try {
      mpi::send(nullptr, 0, 5, 0, mpi::comm_world());
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(error.code(), ErrorCode::mpi);
      EXPECT_STREQ(error.what(), "MPI_Send: a send to rank 5 of 1, tag 0");
    }
    char small = 0;
    mpi::send("long", 4, 0, 0, mpi::comm_self());
    EXPECT_THROW(mpi::receive(&small, 1, 0, 0, mpi::comm_self()), Error);
  });
}

}  // namespace
