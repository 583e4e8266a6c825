// Tests errors of one rank as errors of all, as programs see them.
#include "ropewalk/collectively.hpp"

#include <gtest/gtest.h>

#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "mpi/mpi.hpp"
#include "ropewalk/collectives.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk {
namespace {

using test::run_ranks;

// What body() throws; ErrorCode of 0 and no text where it throws nothing.
struct Thrown {
  int code = 0;
  std::string text;
};
template <class Body>
Thrown thrown(Body&& body) {
  try {
    body();
    return {};
  } catch (const CollectiveError& error) {
    return {static_cast<int>(error.code()), error.what()};
  }
}

// Runs body(ranks, rank) with a Communicator and with Collectives.
template <class Body>
void with_both(int ranks, Body body) {
  run_ranks(ranks, [&](int rank) {
    Communicator world = Communicator::world();
    body(world, rank);
    Collectives collectives(world);
    body(collectives, rank);
  });
}

TEST(Collectively, AnErrorOfOneRankIsThatOfAll) {
  with_both(3, [](auto& ranks, int rank) {
    const Thrown found = thrown([&] {
      collectively(ranks, [&] {
        if (rank == 1) throw Error(ErrorCode::memory, "table: none");
      });
    });
    EXPECT_EQ(found.code, static_cast<int>(ErrorCode::memory));
    EXPECT_EQ(found.text, "table: none (found on rank 1)");
  });
}

TEST(Collectively, TheLowestRankSpeaks) {
  with_both(3, [](auto& ranks, int rank) {
    const Thrown found = thrown([&] {
      collectively(ranks, [&] { throw Error(ErrorCode::system, std::to_string(rank)); });
    });
    EXPECT_EQ(found.text, "0");
  });
}

TEST(Collectively, OtherExceptionsHaveCodesToo) {
  with_both(2, [](auto& ranks, int rank) {
    const Thrown memory = thrown([&] {
      collectively(ranks, [&] {
        if (rank == 0) throw std::bad_alloc();
      });
    });
    EXPECT_EQ(memory.code, static_cast<int>(ErrorCode::memory));
    const Thrown other = thrown([&] {
      collectively(ranks, [&] {
        if (rank == 1) throw std::runtime_error("odd");
      });
    });
    EXPECT_EQ(other.code, static_cast<int>(ErrorCode::internal));
  });
}

TEST(Collectively, NothingIsThrownWhereAllAreWell) {
  with_both(2, [](auto& ranks, int /*rank*/) {
    EXPECT_EQ(thrown([&] { collectively(ranks, [] {}); }).code, 0);
  });
}

// A rank fails before a call that the others make: they find it in meet().
TEST(Collectively, CallsInsideAreMetBy) {
  run_ranks(3, [](int rank) {
    Collectives ranks(Communicator::world());
    bool called = false;
    const Thrown found = thrown([&] {
      collectively(ranks, [&] {
        if (rank == 2) throw Error(ErrorCode::argument, "mass: wrong");
        meet(ranks);
        ranks.barrier();
        called = true;
      });
    });
    EXPECT_FALSE(called);
    EXPECT_EQ(found.code, static_cast<int>(ErrorCode::argument));
    meet(ranks);  // nothing outside
    ranks.barrier();
  });
}

// An error that all ranks of an inner section have is not shared among them a second time; that of
// other ranks is shared.
TEST(Collectively, SectionsNest) {
  run_ranks(2, [](int rank) {
    Collectives outer(Communicator::world());
    Collectives inner(Communicator::world());
    for (Collectives* second : {&outer, &inner}) {
      const Thrown found = thrown([&] {
        collectively(outer, [&] {
          collectively(*second, [&] {
            if (rank == 0) throw Error(ErrorCode::argument, "a: b");
          });
        });
      });
      EXPECT_EQ(found.code, static_cast<int>(ErrorCode::argument));
      EXPECT_EQ(found.text, "a: b (found on rank 0)");
    }
  });
}

TEST(Collectively, ObjectsAreMadeInside) {
  run_ranks(3, [](int rank) {
    const Communicator world = Communicator::world();
    const Thrown found = thrown([&] {
      collectively(world, [&] {
        if (rank == 1) throw Error(ErrorCode::argument, "a: b");
        const Collectives made(world);  // collective: the others do not wait in it for ever
      });
    });
    EXPECT_EQ(found.text, "a: b (found on rank 1)");
  });
}

}  // namespace
}  // namespace ropewalk
