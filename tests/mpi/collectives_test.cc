// Tests communicators, attributes and the bootstrap collectives, on ranks as threads.
#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <vector>

#include "mpi/attributes.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/communicator.hpp"
#include "support/thread_mpi.hpp"

namespace {

using namespace ropewalk;
using test::run_ranks;
using test::RunOptions;

TEST(Communicators, SplitByColourAndKey) {
  run_ranks(5, [](int rank) {
    mpi::Comm half = mpi::split(mpi::comm_world(), rank % 2, -rank);
    EXPECT_EQ(mpi::size(half), rank % 2 == 0 ? 3 : 2);
    EXPECT_EQ(mpi::rank(half), (4 - rank) / 2);
    mpi::free(half);
    EXPECT_EQ(half, mpi::comm_null());
    mpi::Comm none = mpi::split(mpi::comm_world(), rank == 0 ? 0 : mpi::undefined(), 0);
    EXPECT_EQ(none == mpi::comm_null(), rank != 0);
    if (rank == 0) mpi::free(none);
  });
}

TEST(Communicators, SplitByNode) {
  RunOptions options;
  options.ranks_per_node = 2;
  run_ranks(
      5,
      [](int rank) {
        mpi::Comm node = mpi::split_shared(mpi::comm_world());
        EXPECT_EQ(mpi::size(node), rank == 4 ? 1 : 2);
        EXPECT_EQ(mpi::rank(node), rank % 2);
        mpi::free(node);
      },
      options);
}

TEST(Communicators, MessagesOfADuplicateStayApart) {
  run_ranks(2, [](int rank) {
    mpi::Comm other = mpi::dup(mpi::comm_world());
    if (rank == 0) {
      int one = 1, two = 2;
      mpi::send(&one, sizeof one, 1, 0, mpi::comm_world());
      mpi::send(&two, sizeof two, 1, 0, other);
    } else {
      int value = 0;
      mpi::receive(&value, sizeof value, 0, 0, other);
      EXPECT_EQ(value, 2);
      mpi::receive(&value, sizeof value, 0, 0, mpi::comm_world());
      EXPECT_EQ(value, 1);
    }
    mpi::free(other);
  });
}

TEST(Communicators, ThePublicViewAnswers) {
  run_ranks(3, [](int rank) {
    const Communicator world = Communicator::world();
    EXPECT_EQ(world.rank(), rank);
    EXPECT_EQ(world.size(), 3);
    EXPECT_EQ(world.handle(), mpi::comm_world().value);
  });
}

TEST(Collectives, BroadcastGatherAndCombine) {
  run_ranks(4, [](int rank) {
    const mpi::Comm world = mpi::comm_world();
    std::array<int, 3> data{rank, rank + 1, rank + 2};
    mpi::broadcast(data.data(), sizeof data, 2, world);
    EXPECT_EQ(data, (std::array<int, 3>{2, 3, 4}));

    const std::int64_t mine = 10 + rank;
    std::vector<std::int64_t> all(4);
    mpi::all_gather(&mine, all.data(), sizeof mine, world);
    EXPECT_EQ(all, (std::vector<std::int64_t>{10, 11, 12, 13}));

    std::array<std::int64_t, 2> longs{rank, -rank};
    mpi::all_reduce(longs, mpi::Combine::max, world);
    EXPECT_EQ(longs, (std::array<std::int64_t, 2>{3, 0}));
    std::array<double, 1> doubles{0.5 + rank};
    mpi::all_reduce(doubles, mpi::Combine::sum, world);
    EXPECT_EQ(doubles[0], 8.0);
    doubles[0] = 0.5 + rank;
    mpi::all_reduce(doubles, mpi::Combine::min, world);
    EXPECT_EQ(doubles[0], 0.5);
  });
}

std::atomic<int> deleted = 0;
void count_delete(void* value) noexcept { deleted += *static_cast<int*>(value); }

TEST(Attributes, AreDeletedOnceWithTheirCommunicator) {
  deleted = 0;
  run_ranks(2, [](int) {
    static int one = 1, ten = 10;
    mpi::Keyval keyval = mpi::create_keyval(&count_delete);
    mpi::Comm comm = mpi::dup(mpi::comm_world());
    EXPECT_EQ(mpi::attribute(comm, keyval), nullptr);
    mpi::set_attribute(comm, keyval, &one);
    EXPECT_EQ(mpi::attribute(comm, keyval), &one);
    mpi::Comm copy = mpi::dup(comm);
    EXPECT_EQ(mpi::attribute(copy, keyval), nullptr);
    mpi::set_attribute(comm, keyval, &ten);  // deletes &one
    mpi::set_attribute(copy, keyval, &one);
    mpi::delete_attribute(copy, keyval);
    EXPECT_EQ(mpi::attribute(copy, keyval), nullptr);
    mpi::free(copy);
    mpi::free(comm);
    mpi::set_attribute(mpi::comm_self(), keyval, &ten);  // deleted when MPI ends
    mpi::free_keyval(keyval);
    EXPECT_GE(mpi::tag_upper_bound(mpi::comm_world()), 32767);
  });
  EXPECT_EQ(deleted, 2 * (1 + 1 + 10 + 10));
}

}  // namespace
