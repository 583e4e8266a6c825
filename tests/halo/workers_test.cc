// Copies that several threads of a rank share: each is made once and complete, on any number of
// threads and nodes, and an error of the one that leads comes to all.
#include "halo/workers.hpp"

#include <gtest/gtest.h>

#include <stdlib.h>
#include <unistd.h>

#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <mutex>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/schedule.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk {
namespace {

using halo::Workers;
using test::run_ranks;

// Runs lead(), and beside it as many meetings on each of the other workers.
template <class Lead>
void beside_helpers(Workers& workers, int meetings, Lead&& lead) {
  std::vector<std::thread> others;
  for (int i = 1; i < workers.count(); ++i) {
    others.emplace_back([&workers, meetings, i] {
      for (int meeting = 0; meeting < meetings; ++meeting) workers.help(i);
    });
  }
  lead();
  for (std::thread& other : others) other.join();
}

class WorkersOf : public testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Counts, WorkersOf, testing::Values(1, 2, 3, 5));

TEST_P(WorkersOf, MakeEachCopyOnceInEveryRound) {
  constexpr int meetings = 40;
  constexpr std::size_t most = 9;
  Workers workers(GetParam(), true);
  std::vector<int> times(most, 0);  // plain: one worker writes each, and the leader reads it
  beside_helpers(workers, meetings, [&] {
    for (int meeting = 0; meeting < meetings; ++meeting) {
      if (meeting % 2 == 0) workers.gather();
      for (std::size_t items = 0; items <= most; ++items) {
        workers.share(items, [&](std::size_t i) { ++times[i]; });
        for (std::size_t i = 0; i < most; ++i) EXPECT_EQ(times[i], i < items ? 1 : 0);
        times.assign(most, 0);
      }
      workers.dismiss();
    }
  });
}

// The leader ends its copy only when the other has begun one, which takes longer.
TEST(Workers, ShareReturnsWhenTheOthersHaveCopied) {
  Workers workers(2, true);
  beside_helpers(workers, 1, [&] {
    workers.gather();
    const std::thread::id leader = std::this_thread::get_id();
    std::atomic<bool> begun{false};
    int made = 0;
    workers.share(2, [&](std::size_t) {
      if (std::this_thread::get_id() == leader) {
        while (!begun.load()) std::this_thread::yield();
        return;
      }
      begun.store(true);
      std::this_thread::sleep_for(std::chrono::milliseconds(5));
      made = 1;  // plain: share() orders it
    });
    EXPECT_EQ(made, 1);
    workers.dismiss();
  });
}

TEST(Workers, TheLeaderNeedsNobodyToMakeItsCopies) {
  Workers workers(3, true);
  int made = 0;
  workers.share(10, [&](std::size_t) { ++made; });
  EXPECT_EQ(made, 10);
  beside_helpers(workers, 1, [&] { workers.dismiss(); });
}

TEST(Workers, CopyNoMoreOfThemThanTheExchangeIsWorth) {
  constexpr int count = 4;
  Workers workers(count, 2, true);
  EXPECT_EQ(workers.count(), count);
  EXPECT_EQ(workers.sharing(), 2);
  std::mutex mutex;
  std::set<std::thread::id> seen;
  constexpr int meetings = 200;
  beside_helpers(workers, meetings, [&] {
    for (int meeting = 0; meeting < meetings; ++meeting) {
      workers.gather();
      int made = 0;
      workers.share(20, [&](std::size_t) {
        const std::scoped_lock lock(mutex);
        seen.insert(std::this_thread::get_id());
        ++made;
        std::this_thread::yield();
      });
      EXPECT_EQ(made, 20);
      workers.dismiss();
    }
  });
  EXPECT_LE(seen.size(), 2U);
}

TEST(Workers, AreWorthTheirShareOfTheBytes) {
  constexpr std::size_t each = 1000;
  EXPECT_EQ(halo::sharing_workers(4, 0, each), 1);
  EXPECT_EQ(halo::sharing_workers(4, 1999, each), 1);
  EXPECT_EQ(halo::sharing_workers(4, 2000, each), 2);
  EXPECT_EQ(halo::sharing_workers(4, 3999, each), 3);
  EXPECT_EQ(halo::sharing_workers(4, 1U << 30, each), 4);
  EXPECT_EQ(halo::sharing_workers(1, 1U << 30, each), 1);
  EXPECT_EQ(halo::sharing_workers(8, 64, 1), 8);
}

TEST(Workers, AllThrowWhatTheLeaderThrows) {
  Workers workers(3, true);
  std::atomic<int> thrown{0};
  std::vector<std::thread> others;
  for (int i = 1; i < 3; ++i) {
    others.emplace_back([&workers, &thrown, i] {
      try {
        workers.help(i);
      } catch (const Error& error) {
        thrown += error.code() == ErrorCode::mpi && std::string(error.what()) == "no" ? 1 : 0;
      }
      workers.help(i);  // the next time all is well
    });
  }
  EXPECT_THROW(workers.lead([] { throw Error(ErrorCode::mpi, "no"); }), Error);
  workers.dismiss();
  for (std::thread& other : others) other.join();
  EXPECT_EQ(thrown.load(), 2);
}

TEST(Workers, DivideWhatIsLargeAndNothingElse) {
  std::vector<std::byte> memory(1 << 20);
  const kernels::StridedCopy large(memory.data(), memory.data() + (1 << 19), {{}, {}, {}, 400000});
  const kernels::StridedCopy small(memory.data(), memory.data() + (1 << 19), {{}, {}, {}, 100});
  EXPECT_EQ(halo::divided({large, small}, 1).size(), 2U);
  const std::vector<kernels::StridedCopy> parts = halo::divided({large, small}, 4);
  EXPECT_GE(parts.size(), 9U);
  std::size_t bytes = 0;
  for (const kernels::StridedCopy& part : parts) bytes += part.bytes();
  EXPECT_EQ(bytes, 400100U);
  EXPECT_EQ(halo::divided({small}, 4).size(), 1U);
}

// ---- halos

constexpr std::size_t edge = 66;  // with ghosts: faces of 32 KiB and more, which are divided

struct Sharing {
  const char* nodes;
  Strategy strategy;
  bool arena;
};

// With a profile by which any exchange is worth all workers, and without.
class HaloWorkers : public testing::TestWithParam<Sharing> {
 protected:
  HaloWorkers() {
    std::ofstream(profile_) << "halo.worker_bytes = 1\n";
    setenv("ROPEWALK_NODES", GetParam().nodes, 1);
  }
  ~HaloWorkers() override {
    unsetenv("ROPEWALK_NODES");
    unsetenv("ROPEWALK_PROFILE");
    std::remove(profile_.c_str());
  }
  void share_all() { setenv("ROPEWALK_PROFILE", profile_.c_str(), 1); }

 private:
  std::string profile_ = testing::TempDir() + "halo_workers_profile_" + std::to_string(getpid());
};

INSTANTIATE_TEST_SUITE_P(Ways, HaloWorkers,
                         testing::Values(Sharing{"4", Strategy::direct, true},
                                         Sharing{"4", Strategy::direct, false},
                                         Sharing{"4", Strategy::concurrent, true},
                                         Sharing{"2", Strategy::direct, true},
                                         Sharing{"round:2", Strategy::automatic, true},
                                         Sharing{"3,1", Strategy::direct, false}));

// The ghosts of one exchange, on four ranks one after the other.
std::vector<std::uint64_t> ghosts_with(int workers, const Sharing& how) {
  constexpr std::size_t cells = edge * edge * edge;
  std::vector<std::uint64_t> all(4 * cells);
  run_ranks(4, [&](int rank) {
    const CartesianGrid grid(Communicator::world(), {2, 2, 1}, {true, false, true});
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    std::vector<std::uint64_t> in_private(cells);
    Buffer<std::uint64_t> in_arena(cells);
    std::uint64_t* field = how.arena ? in_arena.data() : in_private.data();
    Halo halo(grid, endpoints,
              std::vector<Field>{{field, 8, {edge - 2, edge - 2, edge - 2}, {1, 1, 1}}},
              {.strategy = how.strategy, .workers = workers});
    EXPECT_EQ(halo.workers(), workers);
    ThreadTeam team({.threads = workers, .pin = false});
    for (std::uint64_t step = 1; step <= 3; ++step) {
      team.run([&](int worker) {
        const auto share = [&](int of) {
          return cells * static_cast<std::size_t>(of) / static_cast<std::size_t>(workers);
        };
        for (std::size_t i = share(worker); i < share(worker + 1); ++i) {
          field[i] = (step * 4 + static_cast<std::uint64_t>(rank)) * cells + i;
        }
        halo.start_worker(worker);
        halo.wait_worker(worker);
      });
    }
    std::copy(field, field + cells,
              all.begin() + static_cast<std::ptrdiff_t>(static_cast<std::size_t>(rank) * cells));
  });
  return all;
}

TEST_P(HaloWorkers, FillTheSameGhostsHoweverManyTheyAre) {
  Sharing alone = GetParam();
  alone.strategy = Strategy::concurrent;
  const std::vector<std::uint64_t> expected = ghosts_with(1, alone);
  EXPECT_TRUE(ghosts_with(3, GetParam()) == expected) << "3 workers, of which few copy";
  share_all();
  for (const int workers : {1, 2, 3, 4}) {
    EXPECT_TRUE(ghosts_with(workers, GetParam()) == expected) << workers << " workers";
  }
}

// What each worker writes into the buffer is its neighbour's after wait_worker().
TEST(HaloBuffersOfWorkers, ComeWithWhatAllHaveWritten) {
  constexpr std::size_t count = 3000;
  for (const Strategy strategy : {Strategy::put, Strategy::direct, Strategy::automatic}) {
    run_ranks(2, [&](int rank) {
      const CartesianGrid grid(Communicator::world(), {2}, {true});
      EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
      constexpr int workers = 3;
      Halo halo(grid, endpoints, HaloBuffers{{count * 8, count * 8}},
                {.strategy = strategy, .workers = workers});
      ThreadTeam team({.threads = workers, .pin = false});
      std::atomic<int> wrong{0};
      for (std::uint64_t step = 1; step <= 20; ++step) {
        const auto value = [&](int of, std::size_t i) {
          return (step * 2 + static_cast<std::uint64_t>(of)) * count + i;
        };
        team.run([&](int worker) {
          for (int direction = 0; direction < 2; ++direction) {
            auto* to = static_cast<std::uint64_t*>(halo.send_buffer(direction));
            for (std::size_t i = static_cast<std::size_t>(worker); i < count; i += workers)
              to[i] = value(rank, i);
          }
          team.barrier();  // before start_worker() changes what send_buffer() returns
          halo.start_worker(worker);
          halo.wait_worker(worker);
          const auto* from = static_cast<const std::uint64_t*>(halo.receive_buffer(worker % 2));
          for (std::size_t i = 0; i < count; ++i) wrong += from[i] != value(1 - rank, i) ? 1 : 0;
          team.barrier();
        });
      }
      EXPECT_EQ(wrong.load(), 0);
    });
  }
}

TEST(HaloWorkersArgument, IsCheckedOnEveryRank) {
  run_ranks(2, [](int rank) {
    const CartesianGrid grid(Communicator::world(), {2}, {true});
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    const HaloBuffers faces{{8, 8}};
    for (const int workers : {0, -1, Halo::max_workers + 1}) {
      EXPECT_THROW(Halo(grid, endpoints, faces, {.workers = rank == 0 ? workers : 1}), Error);
    }
    Halo halo(grid, endpoints, faces, {.workers = 1});
    EXPECT_THROW(halo.start_worker(1), Error);
    EXPECT_THROW(halo.wait_worker(-1), Error);
    halo.start_worker(0);
    EXPECT_THROW(halo.start_worker(0), Error);
    halo.wait_worker(0);
  });
}

}  // namespace
}  // namespace ropewalk
