// Tests the MPI of threads itself: the errors of a program that it must detect.
#include <gtest/gtest.h>

#include <stdexcept>
#include <thread>

#include "mpi/mpi.hpp"
#include "ropewalk/error.hpp"
#include "support/thread_mpi.hpp"

namespace {

using namespace ropewalk;
using test::run_ranks;
using test::RunOptions;

std::string failure(int ranks, const std::function<void(int)>& body,
                    const RunOptions& options = {}) {
  try {
    run_ranks(ranks, body, options);
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

TEST(ThreadMpi, GivesEveryRankItsOwn) {
  std::atomic<int> sum = 0;
  run_ranks(5, [&](int rank) {
    EXPECT_EQ(mpi::rank(mpi::comm_world()), rank);
    EXPECT_EQ(mpi::size(mpi::comm_world()), 5);
    EXPECT_EQ(mpi::rank(mpi::comm_self()), 0);
    EXPECT_EQ(mpi::size(mpi::comm_self()), 1);
    sum += rank;
  });
  EXPECT_EQ(sum, 10);
}

TEST(ThreadMpi, RethrowsTheFirstExceptionAndReleasesTheOthers) {
  EXPECT_EQ(failure(3,
                    [](int rank) {
                      if (rank == 1) throw std::runtime_error("this one");
                      mpi::barrier(mpi::comm_world());
                    }),
            "this one");
}

TEST(ThreadMpi, FindsADeadlock) {
  const std::string text = failure(2, [](int rank) {
    int value;
    mpi::receive(&value, sizeof value, 1 - rank, 0, mpi::comm_world());
  });
  EXPECT_NE(text.find("deadlock"), std::string::npos) << text;
}

TEST(ThreadMpi, FindsADeadlockWithARankThatHasEnded) {
  const std::string text = failure(2, [](int rank) {
    if (rank == 0) mpi::barrier(mpi::comm_world());
  });
  EXPECT_NE(text.find("deadlock"), std::string::npos) << text;
}

TEST(ThreadMpi, FindsCollectivesThatDoNotMatch) {
  const std::string text = failure(2, [](int rank) {
    int value = 0;
    if (rank == 0) return mpi::barrier(mpi::comm_world());
    mpi::broadcast(&value, sizeof value, 0, mpi::comm_world());
  });
  EXPECT_NE(text.find("while others call"), std::string::npos) << text;
}

TEST(ThreadMpi, FindsRequestsAndCommunicatorsLeftOver) {
  EXPECT_NE(failure(1,
                    [](int) {
                      static char data[4];
                      mpi::ireceive(data, 4, 0, 0, mpi::comm_world());
                      mpi::dup(mpi::comm_world());
                    })
                .find("1 requests were never completed; 1 communicators were never freed"),
            std::string::npos);
}

TEST(ThreadMpi, ThreadsOfARankAdoptIt) {
  run_ranks(2, [](int rank) {
    mpi::Comm lane = mpi::dup(mpi::comm_world());
    const std::uintptr_t identity = mpi::thread_identity();
    std::thread helper([&] {
      mpi::adopt_thread_identity(identity);
      int other = -1;
      mpi::Request request = mpi::ireceive(&other, sizeof other, 1 - rank, 0, lane);
      mpi::send(&rank, sizeof rank, 1 - rank, 0, lane);
      mpi::wait(request);
      EXPECT_EQ(other, 1 - rank);
    });
    mpi::barrier(mpi::comm_world());
    helper.join();
    mpi::free(lane);
  });
}

TEST(ThreadMpi, RefusesThreadsWithoutARankAndBelowTheirLevel) {
  run_ranks(1, [](int) {
    std::thread([] { EXPECT_THROW(mpi::rank(mpi::comm_world()), Error); }).join();
  });
  RunOptions options;
  options.level = mpi::ThreadLevel::funneled;
  run_ranks(
      1,
      [](int) {
        EXPECT_EQ(mpi::thread_level(), mpi::ThreadLevel::funneled);
        EXPECT_EQ(mpi::init(mpi::ThreadLevel::multiple), mpi::ThreadLevel::funneled);
        const std::uintptr_t identity = mpi::thread_identity();
        std::thread([identity] {
          mpi::adopt_thread_identity(identity);
          EXPECT_THROW(mpi::rank(mpi::comm_world()), Error);
        }).join();
      },
      options);
}

TEST(ThreadMpi, InjectsErrors) {
  RunOptions options;
  options.fail = [](const char* function, int rank) {
    return rank == 1 && std::string(function) == "MPI_Comm_dup" ? 13 : 0;
  };
  const std::string text = failure(
      2, [](int) { mpi::dup(mpi::comm_world()); }, options);
  EXPECT_EQ(text, "MPI_Comm_dup: code 13");
}

}  // namespace
