// A rank dies; every survivor gets an error that names it, wherever it waits.
#include <gtest/gtest.h>
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <string>
#include <vector>

#include "os/pidfd.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/memory.hpp"
#include "support/forked_ranks.hpp"

namespace ropewalk::test {
namespace {

constexpr int most_ranks = 5;
constexpr int victim = 1;

enum Exit { good = 0, no_error = 1, wrong_error = 2, not_direct = 3 };

using Call = void (*)(Collectives&);

int outcome_of(Collectives& communicator, Call call) {
  try {
    call(communicator);
    communicator.barrier();  // a call that need not wait for the dead comes back
    return no_error;
  } catch (const Error& error) {
    const bool names = std::string(error.what()).find("rank 1 ") != std::string::npos;
    if (error.code() == ErrorCode::peer_dead && names) return good;
    std::fprintf(stderr, "rank %d: %s\n", forked_rank(), error.what());
    return wrong_error;
  }
}

int live(Call call, bool dies_waiting) {
  Collectives communicator(Communicator::world());
  if (!communicator.direct()) return not_direct;
  communicator.barrier();
  if (forked_rank() == victim) {
    // Another way to die: in the call, most often while the others have not come yet.
    if (dies_waiting) {
      alarm(0);
      std::signal(SIGALRM, SIG_DFL);
      ualarm(20000, 0);
      call(communicator);
    }
    raise(SIGKILL);
  }
  if (dies_waiting) usleep(100000);
  const int outcome = outcome_of(communicator, call);
  // Who leaves is as dead as the victim: nobody does before all have seen what they see.
  meet(forked_ranks() - 1);
  return outcome;
}

struct Situation {
  const char* name;
  Call call;
};

std::vector<double> numbers(std::size_t count) { return std::vector<double>(count, 1.0); }

const Situation situations[] = {
    {"barrier", [](Collectives& on) { on.barrier(); }},
    {"small_allreduce",
     [](Collectives& on) {
       double value = 1;
       on.allreduce(in_place, &value, 1, ElementType::float64, ReductionOp::sum);
     }},
    {"large_allreduce",
     [](Collectives& on) {
       auto values = numbers(100000);
       on.allreduce(in_place, values.data(), values.size(), ElementType::float64, ReductionOp::sum);
     }},
    {"broadcast_of_the_dead",
     [](Collectives& on) {
       auto values = numbers(100000);
       on.broadcast(values.data(), values.size() * sizeof(double), victim);
     }},
    {"gather_at_the_dead",
     [](Collectives& on) {
       auto values = numbers(10000);
       auto results = numbers(10000 * most_ranks);
       on.gather(values.data(), results.data(), values.size() * sizeof(double), victim);
     }},
    {"alltoall",
     [](Collectives& on) {
       auto values = numbers(5000 * most_ranks);
       auto results = values;
       on.alltoall(values.data(), results.data(), 5000 * sizeof(double));
     }},
    // Private blocks that others write into mapped buffers, or would.
    {"pushed_allgather",
     [](Collectives& on) {
       const auto values = numbers(10000);
       const Buffer<double> results(10000 * most_ranks);
       on.allgather(values.data(), results.data(), values.size() * sizeof(double));
     }},
    {"pushed_gather_at_the_dead",
     [](Collectives& on) {
       const auto values = numbers(10000);
       const Buffer<double> results(10000 * most_ranks);
       on.gather(values.data(), results.data(), values.size() * sizeof(double), victim);
     }},
    {"pushed_scatter_of_the_dead",
     [](Collectives& on) {
       const auto values = numbers(5000 * most_ranks);
       const Buffer<double> results(5000);
       on.scatter(values.data(), results.data(), 5000 * sizeof(double), victim);
     }},
    {"nonblocking", [](Collectives& on) {
       auto values = numbers(10);
       on.start_allreduce(in_place, values.data(), values.size(), ElementType::float64,
                          ReductionOp::sum)
           .wait();
     }}};

class DeadPeer : public testing::TestWithParam<Situation> {};

TEST_P(DeadPeer, IsNamedToEverySurvivor) {
  if (!os::open_pidfd(getpid())) GTEST_SKIP() << "no pidfd on this kernel";
  for (const int count : {3, most_ranks}) {
    for (const bool dies_waiting : {false, true}) {
      const std::vector<int> codes =
          run_forked(count, [&] { return live(GetParam().call, dies_waiting); });
      if (codes[0] == not_direct) GTEST_SKIP() << "processes here cannot reach each other's memory";
      for (int rank = 0; rank < count; ++rank) {
        EXPECT_EQ(codes[rank], rank == victim ? -1 : static_cast<int>(good))
            << "rank " << rank << " of " << count << (dies_waiting ? ", died waiting" : "");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(In, DeadPeer, testing::ValuesIn(situations),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace ropewalk::test
