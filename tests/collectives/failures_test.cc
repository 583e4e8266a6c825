// One rank gets no memory, or an error of MPI, in the middle of a collective call. It throws, and
// so do the others if they would wait for it: no rank hangs, and the next call is served again.
#include "support/injected_failures.hpp"

#include <gtest/gtest.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <csignal>
#include <cstdint>
#include <cstring>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "collectives/typed.hpp"
#include "mpi/datatypes.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/memory.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

constexpr int ranks = 3;
constexpr unsigned patience_s = 60;  // of a test that takes two

// Memory for a call: of the arena, or private.
struct Memory {
  Memory(std::size_t count, bool mapped)
      : arena(mapped ? count : 1),
        own(mapped ? 0 : count),
        data(mapped ? arena.data() : own.data()) {}
  Buffer<std::int64_t> arena;
  std::vector<std::int64_t> own;
  std::int64_t* data;
};

struct Call {
  const char* name;
  std::function<void(Collectives&, std::int64_t* send, std::int64_t* receive, std::size_t n)> make;
};

using Comm = Collectives;
namespace typed = collectives::typed;

// Sums by MPI_Reduce_local, as of operations of the user.
typed::Reduction by_mpi() {
  typed::Reduction made{};
  made.operation.type = ElementType::int64;
  made.operation.element_bytes = sizeof(std::int64_t);
  made.operation.by_mpi = true;
  made.operation.mpi_type = mpi::datatype(ElementType::int64);
  made.operation.mpi_op = mpi::op(ReductionOp::sum);
  return made;
}

constexpr auto type = ElementType::int64;
constexpr auto sum = ReductionOp::sum;

// Each of `n` elements a rank; buffers have ranks * n.
std::vector<Call> calls() {
  return {
      {"allreduce", [](Comm& c, auto* s, auto* r, auto n) { c.allreduce(s, r, n, type, sum); }},
      {"allreduce in place",
       [](Comm& c, auto*, auto* r, auto n) { c.allreduce(in_place, r, n, type, sum); }},
      {"reduce", [](Comm& c, auto* s, auto* r, auto n) { c.reduce(s, r, n, type, sum, 1); }},
      {"scan", [](Comm& c, auto* s, auto* r, auto n) { c.scan(s, r, n, type, sum); }},
      {"exscan in place",
       [](Comm& c, auto*, auto* r, auto n) { c.exscan(in_place, r, n, type, sum); }},
      {"reduce_scatter_block",
       [](Comm& c, auto* s, auto* r, auto n) { c.reduce_scatter_block(s, r, n, type, sum); }},
      {"broadcast", [](Comm& c, auto*, auto* r, auto n) { c.broadcast(r, n * 8, 1); }},
      {"allgather", [](Comm& c, auto* s, auto* r, auto n) { c.allgather(s, r, n * 8); }},
      {"gather", [](Comm& c, auto* s, auto* r, auto n) { c.gather(s, r, n * 8, 2); }},
      {"scatter", [](Comm& c, auto* s, auto* r, auto n) { c.scatter(s, r, n * 8, 0); }},
      {"alltoall", [](Comm& c, auto* s, auto* r, auto n) { c.alltoall(s, r, n * 8); }},
      {"alltoall in place",
       [](Comm& c, auto*, auto* r, auto n) { c.alltoall(in_place, r, n * 8); }},
      {"alltoallv in place",
       [](Comm& c, auto*, auto* r, auto n) {
         const std::array<std::size_t, ranks> bytes{n * 8, n * 8, n * 8};
         const std::array<std::size_t, ranks> at{0, n * 8, 2 * n * 8};
         c.alltoallv(in_place, bytes.data(), at.data(), r, bytes.data(), at.data());
       }},
      {"allreduce by MPI",
       [](Comm& c, auto* s, auto* r, auto n) { typed::allreduce(c, s, r, n, by_mpi()); }},
      {"reduce by MPI",
       [](Comm& c, auto* s, auto* r, auto n) { typed::reduce(c, s, r, n, by_mpi(), 0); }},
      {"scan by MPI",
       [](Comm& c, auto* s, auto* r, auto n) { typed::scan(c, s, r, n, by_mpi(), false); }},
      {"reduce_scatter_block by MPI",
       [](Comm& c, auto* s, auto* r, auto n) {
         typed::reduce_scatter_block(c, s, r, n, by_mpi());
       }},
      {"started",
       [](Comm& c, auto* s, auto* r, auto n) { c.start_allreduce(s, r, n, type, sum).wait(); }},
  };
}

// What is under way, for the message of a hang.
const char* under_way = "";

void say_and_leave(int) {
  const char text[] = "hangs in ";
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  (void)!write(STDERR_FILENO, under_way, std::strlen(under_way));
  _exit(1);
}

struct Trial {
  std::atomic<int> errors{0};
  std::atomic<bool> over{false};  // no call has failed any more
  std::string failed;
};

// One call of a new communicator: what is made at the first call is made again.
void attempt_call(const Call& call, Trial& trial, int number, int rank, int victim, std::size_t n,
                  bool mapped) {
  Collectives comm(Communicator::world());
  const Memory send(ranks * n, mapped);
  const Memory receive(ranks * n, mapped);
  std::fill_n(send.data, ranks * n, rank + 1);
  comm.barrier();
  if (rank == 0) trial.errors = 0;
  comm.barrier();
  if (rank == victim) fail_call(number);
  const Attempt own = attempt([&] { call.make(comm, send.data, receive.data, n); });
  if (rank == victim) {
    trial.failed = end_failing();
    trial.over = trial.failed.empty();
  }
  if (!own.error.empty()) ++trial.errors;
  // There are two barriers, because a rank that comes through the first one alone meets the refusal
  // in the second.
  attempt([&] { comm.barrier(); });
  mpi::barrier(mpi::comm_world());
  if (trial.over) {
    ASSERT_EQ(own.error, "") << call.name;
  }
  std::int64_t one = 1;
  std::int64_t all = 0;
  comm.allreduce(&one, &all, 1, type, sum);
  ASSERT_EQ(all, ranks) << call.name << " after the failure of " << trial.failed;
  comm.allreduce(send.data, receive.data, n, type, sum);
  ASSERT_EQ(receive.data[n - 1], ranks * (ranks + 1) / 2)
      << call.name << " after the failure of " << trial.failed;
}

class CallFailures : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(OnRank, CallFailures, testing::Values(0, 1, 2),
                         testing::PrintToStringParamName());

void try_all(int victim, std::size_t n, bool mapped) {
  std::signal(SIGALRM, &say_and_leave);
  alarm(patience_s);
  int attempts = 0;
  const mpi::Library* plain = nullptr;
  for (const Call& call : calls()) {
    for (Trial trial; !trial.over;) {
      ++attempts;
      under_way = call.name;
      SCOPED_TRACE(std::string(call.name) + ", call " + std::to_string(attempts));
      run_ranks(ranks, [&](int rank) {
        mpi::barrier(mpi::comm_world());
        if (rank == 0) {
          plain = &mpi::library();
          mpi::exchange_library(failing_library(*plain));
        }
        mpi::barrier(mpi::comm_world());
        attempt_call(call, trial, attempts, rank, victim, n, mapped);
        mpi::barrier(mpi::comm_world());
        if (rank == 0) mpi::exchange_library(plain);
        mpi::barrier(mpi::comm_world());
      });
      if (testing::Test::HasFailure()) return;
    }
    attempts = 0;
  }
  alarm(0);
}

TEST_P(CallFailures, OfSmallPrivateBuffers) { try_all(GetParam(), 300, false); }
TEST_P(CallFailures, OfLargePrivateBuffers) { try_all(GetParam(), 30'000, false); }
TEST_P(CallFailures, OfMappedBuffers) { try_all(GetParam(), 30'000, true); }

// Over nodes, what fails within a call ends its communicator, on all ranks alike; what fails before
// the call does not. Nobody hangs.
struct Over {
  const char* nodes;
  const char* movements;
  int victim;
};
class CallFailuresOverNodes : public testing::TestWithParam<Over> {
 protected:
  CallFailuresOverNodes() {
    setenv("ROPEWALK_NODES", GetParam().nodes, 1);
    setenv("ROPEWALK_MOVEMENTS", GetParam().movements, 1);
  }
  ~CallFailuresOverNodes() override {
    unsetenv("ROPEWALK_NODES");
    unsetenv("ROPEWALK_MOVEMENTS");
  }
};
INSTANTIATE_TEST_SUITE_P(Layouts, CallFailuresOverNodes,
                         testing::Values(Over{"2,1", "nodes", 0}, Over{"2,1", "nodes", 2},
                                         Over{"2,1", "auto", 1}, Over{"1", "auto", 0}),
                         [](const auto& one) {
                           std::string name = std::string(one.param.nodes) + "_" +
                                              one.param.movements + "_" +
                                              std::to_string(one.param.victim);
                           std::replace(name.begin(), name.end(), ',', '_');
                           return name;
                         });

// MPI may still write to the buffers of a call that has failed (docs, dead-ranks.md), so the
// buffers of a trial stay to the end of the run.
struct Later {
  std::array<std::unique_ptr<Memory>, 2 * ranks> buffers;
  std::array<std::string, ranks> errors;
  std::array<std::int64_t, ranks> sums{};
};

void attempt_over_nodes(const Call& call, Trial& trial, Later& later, int number, int rank,
                        int victim, std::size_t n, bool goes_on) {
  Collectives comm(Communicator::world());
  const auto place = static_cast<std::size_t>(rank);
  const Memory& send = *(later.buffers[place] = std::make_unique<Memory>(ranks * n, false));
  const Memory& receive =
      *(later.buffers[ranks + place] = std::make_unique<Memory>(ranks * n, false));
  std::fill_n(send.data, ranks * n, rank + 1);
  comm.barrier();
  mpi::barrier(mpi::comm_world());
  if (rank == victim) fail_call(number);
  const Attempt own = attempt([&] { call.make(comm, send.data, receive.data, n); });
  if (rank == victim) {
    trial.failed = end_failing();
    trial.over = trial.failed.empty();
  }
  for (int again = 0; goes_on && again < 2; ++again) attempt([&] { comm.barrier(); });
  mpi::barrier(mpi::comm_world());
  if (trial.over) {
    ASSERT_EQ(own.error, "") << call.name;
  }
  if (!goes_on) return;
  const std::int64_t one = 1;
  later.errors[place] =
      attempt([&] { comm.allreduce(&one, &later.sums[place], 1, type, sum); }).error;
  mpi::barrier(mpi::comm_world());
  for (std::size_t other = 0; other < ranks; ++other) {
    EXPECT_EQ(later.errors[other].empty(), later.errors[0].empty())
        << call.name << " after the failure of " << trial.failed << ": " << later.errors[other]
        << " on rank " << other << ", " << later.errors[0] << " on rank 0";
    if (later.errors[other].empty()) {
      EXPECT_EQ(later.sums[other], ranks);
    }
  }
  mpi::barrier(mpi::comm_world());
}

TEST_P(CallFailuresOverNodes, AreNoHangs) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  // A rank whose call over nodes has failed begins its next one while others may still read the
  // tables of the first: they get the error all the same, but the sanitizer calls it a race.
  GTEST_SKIP() << "ranks may read tables of a call that has failed on their owner";
#endif
  std::signal(SIGALRM, &say_and_leave);
  const mpi::Library* plain = nullptr;
  for (const std::size_t n : {300, 30'000}) {
    for (const Call& call : calls()) {
      alarm(patience_s);
      under_way = call.name;
      int number = 0;
      for (Trial trial; !trial.over;) {
        ++number;
        Later later;
        SCOPED_TRACE(std::string(call.name) + ", call " + std::to_string(number));
        run_ranks(ranks,
                  [&](int rank) {
                    mpi::barrier(mpi::comm_world());
                    if (rank == 0) {
                      plain = &mpi::library();
                      mpi::exchange_library(failing_library(*plain));
                    }
                    mpi::barrier(mpi::comm_world());
                    // Where MPI makes the calls a rank that goes on may meet one of its own
                    // collectives in the MPI of a rank that has yet to learn of the failure, which
                    // this MPI forbids.
                    const bool goes_on = std::string(GetParam().movements) == "nodes";
                    attempt_over_nodes(call, trial, later, number, rank, GetParam().victim, n,
                                       goes_on);
                    mpi::barrier(mpi::comm_world());
                    if (rank == 0) mpi::exchange_library(plain);
                    mpi::barrier(mpi::comm_world());
                  },
                  // Error notices are on their way for ever, so their communicators are kept.
                  {.check_leaks = false, .frees_wait = false});
        if (testing::Test::HasFailure()) return;
      }
    }
  }
  alarm(0);
}

}  // namespace
}  // namespace ropewalk::test
