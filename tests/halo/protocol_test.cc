// The protocol of direct exchanges: each face is copied once, by whoever comes first; nobody waits
// for more than it must, nor returns before a copy has ended; who dies or leaves is noticed.
#include <gtest/gtest.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "halo/candidate.hpp"
#include "halo/direct.hpp"
#include "halo/making.hpp"
#include "mpi/collectively.hpp"
#include "node/peers.hpp"
#include "os/pidfd.hpp"
#include "os/relax.hpp"
#include "ropewalk/halo.hpp"
#include "support/thread_mpi.hpp"
#include "transport/access.hpp"

namespace ropewalk::test {
namespace {

// Each rank of the ring has a row of 2 x `ghosts` cells and `ghosts` more on either side.
struct Ring {
  CartesianGrid grid;
  std::size_t ghosts;
  Buffer<std::uint64_t> row;
  std::optional<EndpointSet> endpoints;
  std::unique_ptr<halo::DirectCarrier> direct;  // before the endpoints

  explicit Ring(std::size_t width)
      : grid(Communicator::world(), {Communicator::world().size()}, {true}),
        ghosts(width),
        row(4 * width) {
    endpoints.emplace(Communicator::world(),
                      EndpointOptions{.lanes = 1, .threads = false, .pin = false});
    make();
  }
  std::vector<Field> fields() { return {{row.data(), 8, {2 * ghosts}, {ghosts}}}; }
  halo::HaloRequest request(Strategy strategy) {
    return {grid, *endpoints, {strategy, Corners::no}, halo::Form::fields, {}, fields()};
  }
  void make() {
    direct.reset();
    halo::HaloParts parts;
    mpi::collectively(mpi::comm_world(),
                      [&] { parts = halo::make_parts(request(Strategy::direct)); });
    direct.reset(dynamic_cast<halo::DirectCarrier*>(parts.carrier.release()));
  }
  node::Team& team() {
    std::string reason;
    return *transport::Access::lanes(*endpoints)->team(reason);
  }

  static std::uint64_t value(int rank, std::uint64_t round) {
    return static_cast<std::uint64_t>(rank) << 32 | round;
  }
  int neighbour(int step) const { return (grid.rank() + grid.size() + step) % grid.size(); }
  void fill(std::uint64_t round) {
    std::fill(row.begin(), row.end(), value(grid.rank(), round));
    std::fill_n(row.begin(), ghosts, 0);
    std::fill_n(row.end() - ghosts, ghosts, 0);
  }
  void check(std::uint64_t round) const {
    const auto wrong = [&](const std::uint64_t* first, int rank) {
      return std::count_if(first, first + ghosts,
                           [&](std::uint64_t cell) { return cell != value(rank, round); });
    };
    ASSERT_EQ(wrong(row.data(), neighbour(-1)), 0) << "round " << round;
    ASSERT_EQ(wrong(row.data() + 3 * ghosts, neighbour(1)), 0) << "round " << round;
  }
};

std::int64_t sum(std::uint64_t own) {
  std::int64_t total = static_cast<std::int64_t>(own);
  mpi::all_reduce(std::span(&total, 1), mpi::Combine::sum, mpi::comm_world());
  return total;
}

void dawdle(std::mt19937& random) {
  if (random() % 2 == 0) return;
  for (unsigned pause = random() % 200; pause > 0; --pause) os::relax();
  if (random() % 8 == 0) std::this_thread::yield();
}

void exchange_at_random(Ring& ring, std::mt19937& random) {
  dawdle(random);
  ring.direct->start();
  switch (random() % 3) {
    case 0:
      dawdle(random);
      break;
    case 1:
      while (!ring.direct->test()) {
      }
      break;
    default:
      for (unsigned tests = random() % 8; tests > 0; --tests) ring.direct->test();
  }
  ring.direct->wait();
}

// Two faces a rank in each exchange, and as many copies by all ranks together: whoever takes a face
// without having claimed it makes one too many.
void expect_one_copy_a_face(int ranks, std::size_t ghosts, std::uint64_t rounds) {
  run_ranks(ranks, [&](int rank) {
    Ring ring(ghosts);
    std::mt19937 random(static_cast<unsigned>(rank) + 17);
    for (std::uint64_t round = 1; round <= rounds; ++round) {
      ring.fill(round);
      exchange_at_random(ring, random);
      ring.check(round);
    }
    const auto faces = static_cast<std::int64_t>(rounds) * 2 * ranks;
    EXPECT_EQ(sum(ring.direct->copies_made()), faces);
  });
}

TEST(Protocol, SmallFacesAreCopiedOnce) {
  expect_one_copy_a_face(2, 1, 2000);
  expect_one_copy_a_face(3, 1, 300);
}

// Long copies, so that ranks come while one is under way.
TEST(Protocol, LargeFacesAreCopiedOnceAndAwaited) {
  expect_one_copy_a_face(2, 40000, 60);
  expect_one_copy_a_face(3, 10000, 60);
}

// In lockstep, so that both sides of a link come to claim it at the same moment.
TEST(Protocol, ClaimsAtTheSameMoment) {
  constexpr int rounds = 10000;
  std::atomic<int> arrived{0};
  run_ranks(2, [&](int) {
    Ring ring(1);
    for (int round = 1; round <= rounds; ++round) {
      ring.direct->start();
      arrived.fetch_add(1);
      for (int spin = 0; arrived.load() < 2 * round; ++spin) {
        if (spin % 100 == 99) std::this_thread::yield();
      }
      while (!ring.direct->test()) {
      }
    }
    EXPECT_EQ(sum(ring.direct->copies_made()), 4 * rounds);
  });
}

// One rank makes all copies, of faces that come in and of those that go out, while its neighbours
// wait for its word and not for the exchange.
TEST(Protocol, WaitNeedsNoMoreThanAStart) {
  for (const int ranks : {2, 3, 4}) {
    run_ranks(ranks, [](int rank) {
      Ring ring(3);
      for (std::uint64_t round = 1; round <= 20; ++round) {
        ring.fill(round);
        const int first = static_cast<int>(round) % ring.grid.size();
        int word = 0;
        ring.direct->start();
        if (rank != first) mpi::receive(&word, sizeof word, first, 1, mpi::comm_world());
        const std::uint64_t before = ring.direct->copies_made();
        ring.direct->wait();
        if (rank == first) {
          EXPECT_EQ(ring.direct->copies_made(), before + 4);
          for (int to = 0; to < ring.grid.size(); ++to) {
            if (to != first) mpi::send(&word, sizeof word, to, 1, mpi::comm_world());
          }
        }
        ring.check(round);
      }
    });
  }
}

TEST(Protocol, TestAloneDoesTheSame) {
  run_ranks(2, [](int rank) {
    Ring ring(3);
    ring.fill(1);
    int word = 0;
    ring.direct->start();
    if (rank == 0) {
      while (!ring.direct->test()) {
      }
      mpi::send(&word, sizeof word, 1, 1, mpi::comm_world());
    } else {
      mpi::receive(&word, sizeof word, 0, 1, mpi::comm_world());
      EXPECT_TRUE(ring.direct->test());
    }
    ring.check(1);
  });
}

// Who finishes first may end its halo and use its memory again, while its neighbour has not even
// looked; the flags go back when that one has.
TEST(Protocol, EndsBeforeItsNeighbourHasLooked) {
  run_ranks(2, [](int rank) {
    Ring ring(3);
    std::size_t before = 0;
    for (std::uint64_t round = 1; round <= 10; ++round) {
      ring.make();
      ring.fill(round);
      int word = 0;
      ring.direct->start();
      if (rank == 0) {
        ring.direct->wait();
        const std::size_t held = Arena::process().statistics().live_bytes;
        ring.direct.reset();
        EXPECT_EQ(Arena::process().statistics().live_bytes, held);
        ring.check(round);
        ring.fill(0);
        mpi::send(&word, sizeof word, 1, 1, mpi::comm_world());
        mpi::receive(&word, sizeof word, 1, 1, mpi::comm_world());
      } else {
        mpi::receive(&word, sizeof word, 0, 1, mpi::comm_world());
        ring.direct->wait();
        ring.check(round);
        ring.direct.reset();
        mpi::send(&word, sizeof word, 0, 1, mpi::comm_world());
      }
      mpi::barrier(mpi::comm_world());
      if (rank == 0 && round > 1) {
        if (before == 0) before = Arena::process().statistics().live_bytes;
        EXPECT_EQ(Arena::process().statistics().live_bytes, before);
      }
      mpi::barrier(mpi::comm_world());
    }
  });
}

// Makes `rank` a process that has died, as this rank sees it.
void let_die(node::Team& team, int rank, os::ProcessWatch life) {
  node::Peer& peer = team.peer(rank);
  peer.self = false;
  peer.base = nullptr;  // its arena is this process's: not to be unmapped
  peer.life = std::move(life);
}

// Ended, and not waited for while this lives.
class Dead {
 public:
  Dead() : process_(fork()) {
    if (process_ == 0) _exit(0);
    siginfo_t info{};
    waitid(P_PID, static_cast<id_t>(process_), &info, WEXITED | WNOWAIT);
  }
  ~Dead() { waitpid(process_, nullptr, 0); }
  Dead(const Dead&) = delete;
  Dead& operator=(const Dead&) = delete;
  os::ProcessWatch open() const { return os::ProcessWatch(process_); }

 private:
  pid_t process_;
};

template <class Body>
void expect_death_of(int rank, Body&& body) {
  try {
    body();
    FAIL() << "expected an Error";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), ErrorCode::peer_dead) << error.what();
    EXPECT_NE(std::string(error.what()).find("rank " + std::to_string(rank)), std::string::npos)
        << error.what();
  }
}

RunOptions with_leaks() {  // with a rank dead, nothing collective can be given back
  RunOptions options;
  options.check_leaks = false;
  return options;
}

TEST(Protocol, ADeadNeighbourIsNamed) {
  const Dead dead;
  if (!dead.open()) GTEST_SKIP() << "no pidfd on this kernel";
  for (const bool by_test : {false, true}) {
    run_ranks(
        3,
        [&](int rank) {
          Ring ring(3);
          ring.direct->start();
          ring.direct->wait();
          mpi::barrier(mpi::comm_world());
          let_die(ring.team(), rank == 1 ? 0 : 1, dead.open());
          // It does not start. For itself, another one has died.
          if (rank == 1) return expect_death_of(0, [&] { ring.team().waits().look_around(); });
          expect_death_of(1, [&] {
            ring.direct->start();
            while (by_test && !ring.direct->test()) {
            }
            ring.direct->wait();
          });
          EXPECT_THROW(ring.direct->test(), Error);
          EXPECT_THROW(ring.direct->start(), Error);
        },
        with_leaks());
  }
}

// It has claimed a face and will never copy it: neither wait() nor giving up may wait for that.
TEST(Protocol, WhoDiesInTheMiddleOfACopyIsNamed) {
  const Dead dead;
  if (!dead.open()) GTEST_SKIP() << "no pidfd on this kernel";
  run_ranks(
      2,
      [&](int rank) {
        Ring ring(3);
        const int other = 1 - rank;
        halo::FlagLine started;
        halo::FlagLine claim;
        halo::FlagLine copied;
        halo::FlagLine left;
        halo::Transfers transfers;
        transfers.flags = halo::FlagBlock(1);
        transfers.incoming.push_back({other, other, &started, &claim, &copied, 0, {}});
        transfers.left.push_back(&left);
        halo::DirectCarrier direct(transport::Access::lanes(*ring.endpoints), &ring.team(),
                                   std::move(transfers));
        started.number = 1;
        claim.number = 1;
        mpi::barrier(mpi::comm_world());
        let_die(ring.team(), other, dead.open());
        direct.start();
        expect_death_of(other, [&] { direct.wait(); });
        EXPECT_EQ(left.number.load(), 1U);
      },
      with_leaks());
}

// What a rank takes back nobody touches any more, and what is being copied is awaited.
TEST(Protocol, GivingUpLetsNobodyInAfterwards) {
  run_ranks(2, [](int rank) {
    std::mt19937 random(5);
    for (int attempt = 0; attempt < 20; ++attempt) {
      Ring ring(20000);
      ring.fill(1);
      bool gone = false;
      try {
        ring.direct->start();
        for (unsigned pause = random() % 3000; pause > 0; --pause) os::relax();
        if (rank == 0) {
          const std::unique_ptr<halo::DirectCarrier> last = std::move(ring.direct);
          throw 1;
        }
        ring.direct->wait();
      } catch (const Error&) {
        gone = true;
      } catch (int) {
        std::vector<std::uint64_t> now(ring.row.begin(), ring.row.end());
        std::this_thread::yield();
        mpi::barrier(mpi::comm_world());
        EXPECT_TRUE(std::equal(now.begin(), now.end(), ring.row.begin()));
      }
      if (rank == 1) {
        mpi::barrier(mpi::comm_world());
        if (!gone) ring.check(1);
      }
    }
  });
}

// The same without an exchange under way: who comes to the next one finds nobody, and no memory.
TEST(Protocol, LeavingBetweenExchangesIsNoticed) {
  run_ranks(3, [](int rank) {
    Ring ring(3);
    ring.direct->start();
    ring.direct->wait();
    ring.fill(1);
    if (rank == 1) {
      try {
        const std::unique_ptr<halo::DirectCarrier> last = std::move(ring.direct);
        throw 1;
      } catch (int) {
      }
    }
    mpi::barrier(mpi::comm_world());
    if (rank != 1) {
      ring.direct->start();
      EXPECT_THROW(ring.direct->wait(), Error);
    }
    mpi::barrier(mpi::comm_world());
    if (rank == 1) {
      EXPECT_EQ(ring.row[0], 0U);
      EXPECT_EQ(ring.row[ring.row.size() - 1], 0U);
    }
  });
}

TEST(Protocol, AChildOfForkHasNoPartInIt) {
  run_ranks(2, [](int rank) {
    Ring ring(3);
    ring.fill(1);
    ring.direct->start();
    ring.direct->wait();
    mpi::barrier(mpi::comm_world());
    if (rank == 0) {
      const pid_t child = fork();
      ASSERT_GE(child, 0);
      if (child == 0) {
        alarm(60);  // a child that hangs fails the test instead
        int code = 1;
        try {
          ring.direct->start();
        } catch (const Error& error) {
          code = error.code() == ErrorCode::unsupported ? 0 : 2;
        }
        ring.direct.reset();
        _exit(code);
      }
      int status = 0;
      ASSERT_EQ(waitpid(child, &status, 0), child);
      EXPECT_TRUE(WIFEXITED(status)) << "ended by signal " << WTERMSIG(status);
      EXPECT_EQ(WEXITSTATUS(status), 0);
    }
    mpi::barrier(mpi::comm_world());
    ring.fill(2);
    ring.direct->start();
    ring.direct->wait();
    ring.check(2);
  });
}

// This is `direct` as a candidate of `automatic`, with the facts of all ranks gathered.
struct DirectCandidacy {
  halo::HaloRequest request;
  halo::HaloFacts facts;
  halo::Candidates candidates;

  explicit DirectCandidacy(halo::HaloRequest wanted) : request(std::move(wanted)) {
    mpi::collectively(request.comm(), [&] {
      facts = halo::agree_on_setup(request, {.messages = false, .team = true});
      halo::add_direct(request, facts, candidates);
      candidates[0]->show(request, facts);
      facts.table.gather(request.comm(), request.grid.size());
    });
  }
};

// `automatic` measures the copies without writing a byte of the caller's memory, in private memory
// as well.
void expect_rehearsal_elsewhere(bool is_private) {
  run_ranks(3, [&](int) {
    Ring ring(100);
    ring.fill(7);
    const std::vector<std::uint64_t> before(ring.row.begin(), ring.row.end());
    std::vector<std::uint64_t> own = before;
    halo::HaloRequest request = ring.request(Strategy::automatic);
    if (is_private) request.fields[0].data = own.data();
    DirectCandidacy direct(request);
    ASSERT_FALSE(direct.candidates[0]->refusal(direct.request, direct.facts));
    const auto carrier = direct.candidates[0]->rehearsal(direct.request, direct.facts);
    mpi::barrier(mpi::comm_world());
    carrier->start();
    carrier->wait();
    EXPECT_TRUE(std::equal(before.begin(), before.end(), ring.row.begin()));
    EXPECT_EQ(own, before);
    EXPECT_EQ(carrier->send_bytes(), 2 * 100 * 8U);
    EXPECT_EQ(sum(dynamic_cast<halo::DirectCarrier&>(*carrier).copies_made()), 2 * 3);
  });
}

TEST(Choice, RehearsesDirectOnMemoryOfItsOwn) {
  expect_rehearsal_elsewhere(false);
  expect_rehearsal_elsewhere(true);
}

}  // namespace
}  // namespace ropewalk::test
