// A rank is killed while others wait for it in a window; each of them gets an error that names it.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <csignal>
#include <cstddef>
#include <cstdio>
#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "mpi/mpi.hpp"
#include "node/peers.hpp"
#include "os/pidfd.hpp"
#include "ropewalk/error.hpp"
#include "support/forked_ranks.hpp"
#include "window_epochs.hpp"

namespace ropewalk::preload::onesided {
namespace {

constexpr int victim = 1;
enum Exit { good = 0, no_error = 1, wrong_error = 2 };

struct Wait {
  const char* name;
  void (*before)(WindowEpochs&);  // by the victim
  void (*wait)(WindowEpochs&);    // by the others
};

const Wait waits[] = {
    {"fence", [](WindowEpochs&) {}, [](WindowEpochs& epochs) { epochs.fence(); }},
    {"lock", [](WindowEpochs& epochs) { epochs.lock(victim, true, true); },
     [](WindowEpochs& epochs) { epochs.lock(victim, true, true); }},
    {"start", [](WindowEpochs&) {}, [](WindowEpochs& epochs) { epochs.start({victim}); }},
    {"accumulate", [](WindowEpochs& epochs) { epochs.take(victim); },
     [](WindowEpochs& epochs) { epochs.take(victim); }},
};

int outcome_of(const Wait& wait, WindowEpochs& epochs) {
  try {
    wait.wait(epochs);
    return no_error;
  } catch (const Error& error) {
    const bool names = std::string(error.what()).find("rank 1 ") != std::string::npos;
    if (error.code() == ErrorCode::peer_dead && names) return good;
    std::fprintf(stderr, "rank %d: %s\n", test::forked_rank(), error.what());
    return wrong_error;
  }
}

WindowEpochs::Peers processes_of_all() {
  std::vector<pid_t> numbers(static_cast<std::size_t>(test::forked_ranks()));
  const pid_t own = getpid();
  mpi::all_gather(&own, numbers.data(), sizeof own, mpi::comm_world());
  WindowEpochs::Peers peers;
  for (const pid_t number : numbers) {
    peers.push_back(std::make_shared<node::Peer>());
    peers.back()->process = number;
    peers.back()->self = number == own;
    if (number != own) peers.back()->life = os::ProcessWatch(number);
  }
  return peers;
}

int live(const Wait& wait, std::byte* memory) {
  const WindowBoard board(memory, static_cast<std::size_t>(test::forked_ranks()));
  const auto rank = static_cast<std::size_t>(test::forked_rank());
  WindowEpochs epochs(board, rank, processes_of_all(), false);
  if (rank == victim) wait.before(epochs);
  test::meet(test::forked_ranks());
  if (rank == victim) std::raise(SIGKILL);
  const int outcome = outcome_of(wait, epochs);
  // Who leaves is as dead as the victim: nobody does before all have seen what they see.
  test::meet(2 * test::forked_ranks() - 1);
  return outcome;
}

class DeathInWindow : public testing::TestWithParam<Wait> {};

TEST_P(DeathInWindow, IsNamedToEverySurvivor) {
  if (!os::open_pidfd(getpid())) GTEST_SKIP() << "no pidfd on this kernel";
  for (const int count : {2, 4}) {
    const std::size_t bytes = WindowBoard::bytes(static_cast<std::size_t>(count));
    void* memory = mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
    ASSERT_NE(memory, MAP_FAILED);
    const std::vector<int> codes =
        test::run_forked(count, [&] { return live(GetParam(), static_cast<std::byte*>(memory)); });
    munmap(memory, bytes);
    for (int rank = 0; rank < count; ++rank) {
      EXPECT_EQ(codes[static_cast<std::size_t>(rank)], rank == victim ? -1 : static_cast<int>(good))
          << "rank " << rank << " of " << count;
    }
  }
}

INSTANTIATE_TEST_SUITE_P(In, DeathInWindow, testing::ValuesIn(waits),
                         [](const auto& each) { return each.param.name; });

}  // namespace
}  // namespace ropewalk::preload::onesided
