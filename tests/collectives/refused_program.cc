// This program makes calls over nodes that ranks refuse for their arguments. Every rank that
// refuses gets its own error and may go on. The error notices of the others are in the way neither
// of later calls, nor of the end of the communicator, nor of the end of MPI: MPICH ends a program
// that frees a communicator whose messages nobody has received.
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <memory>
#include <vector>

#include "collectives/sums_ranks.hpp"
#include "mpi/collectively.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/collectives.hpp"

namespace {

using namespace ropewalk;

// A rank that passes null refuses; the others get that error.
bool is_refused(Collectives& on, const std::int64_t* given = nullptr) {
  std::vector<std::int64_t> sums(1000);
  try {
    on.allreduce(given, sums.data(), sums.size(), ElementType::int64, ReductionOp::sum);
  } catch (const Error& error) {
    return error.code() == ErrorCode::argument;
  }
  return false;
}

bool is_refused_when_started(Collectives& on) {
  std::int64_t sum = 0;
  try {
    on.start_allreduce(nullptr, &sum, 1, ElementType::int64, ReductionOp::sum).wait();
  } catch (const Error& error) {
    return error.code() == ErrorCode::argument;
  }
  return false;
}

// ---- Each case makes its own communicator and ends it.

int once() {
  Collectives on(Communicator::world());
  return on.nodes() < 2 || !is_refused(on);
}

int when_started() {
  Collectives on(Communicator::world());
  int wrong = 0;
  for (int call = 0; call < 20; ++call) wrong += !is_refused_when_started(on);
  return wrong + !sums_ranks(on) + !is_refused_when_started(on);
}

// The notices are more than any MPI keeps in the memory of one connection.
int often() {
  Collectives on(Communicator::world());
  int wrong = 0;
  for (int call = 0; call < 3000; ++call) wrong += !is_refused(on);
  return wrong + !sums_ranks(on);
}

int among_good_calls() {
  Collectives on(Communicator::world());
  int wrong = 0;
  for (int call = 0; call < 300; ++call) {
    wrong += call % 3 == 0 ? !is_refused(on) : !sums_ranks(on);
    if (call % 7 == 0) on.barrier();
  }
  return wrong;
}

// The ranks refuse calls on a communicator that was split from the program's, which ends later. The
// split one may have one node alone.
int after_a_split() {
  Collectives whole(Communicator::world());
  mpi::Comm part = mpi::split(mpi::comm_world(), mpi::rank(mpi::comm_world()) % 2, 0);
  int wrong = 0;
  {
    Collectives on(Communicator(part.value));
    wrong += !is_refused(on) + !is_refused(whole) + !is_refused(on) + !sums_ranks(on);
  }
  mpi::free(part);
  return wrong + !sums_ranks(whole) + !is_refused(whole);
}

// The others hear that one rank refuses. Nobody waits for it, and it need not know whether all have
// heard.
int by_one_rank(int rank) {
  Collectives on(Communicator::world());
  int wrong = !sums_ranks(on);
  const std::vector<std::int64_t> given(1000);
  wrong += !is_refused(on, on.rank() == rank ? nullptr : given.data());
  return wrong;
}

// The root refuses a call in which some of the others need not wait, so that they end it with the
// notices unread.
int by_a_root() {
  Collectives on(Communicator::world());
  int wrong = !sums_ranks(on);
  const std::int64_t one = 1;
  const auto fails = [](const auto& call) {
    try {
      call();
    } catch (const Error&) {
      return true;
    }
    return false;
  };
  const bool refused =
      fails([&] { on.reduce(&one, nullptr, 1, ElementType::int64, ReductionOp::sum, 0); });
  wrong += on.rank() == 0 && !refused;
  // Where a rank has waited for the root in vain, no rank can make the next call.
  const bool failed = fails([&] { wrong += !sums_ranks(on); });
  const bool any = !mpi::true_on_all(mpi::comm_world(), !failed);
  wrong += failed != any;
  return wrong;
}

// These are more communicators than ropewalk may have over nodes at one time. None of them is lost.
int on_many_communicators() {
  int wrong = 0;
  for (int number = 0; number < 150; ++number) {
    Collectives on(Communicator::world());
    wrong += on.nodes() < 2 || !is_refused(on) || !sums_ranks(on) || !is_refused(on);
    mpi::barrier(mpi::comm_world());
  }
  return wrong;
}

int all_cases() {
  int wrong = 0;
  const auto run = [&](const char* name, int failed) {
    if (failed != 0) std::fprintf(stderr, "%s: %d calls are wrong\n", name, failed);
    wrong += failed;
  };
  run("once", once());
  run("when started", when_started());
  run("often", often());
  run("among good calls", among_good_calls());
  run("after a split", after_a_split());
  // More ranks than cores make communicators slowly.
  if (mpi::size(mpi::comm_world()) == 2) run("on many communicators", on_many_communicators());
  run("by the first rank", by_one_rank(0));
  run("by the last rank", by_one_rank(mpi::size(mpi::comm_world()) - 1));
  run("by a root", by_a_root());
  run("once more", once());
  return wrong;
}

}  // namespace

int main() {
  mpi::init(mpi::ThreadLevel::multiple);
  int wrong = all_cases();
  // MPI ends before this communicator does.
  const auto last = std::make_unique<Collectives>(Communicator::world());
  wrong += !sums_ranks(*last) + !is_refused(*last);
  mpi::finalize();
  return wrong == 0 ? EXIT_SUCCESS : EXIT_FAILURE;
}
