// Tests Strategy::direct where fields and faces are private memory: they are copied by the kernel,
// attached, or staged. Every way gives what index arithmetic says, and what the kernel refuses is
// an error of all ranks that are concerned.
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cstdio>
#include <cstdlib>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <tuple>
#include <utility>
#include <vector>

#include "channel/attachments.hpp"
#include "halo/random_case.hpp"
#include "halo/shown_memory.hpp"
#include "halo/staged_faces.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/schedule.hpp"
#include "settings/value.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

constexpr HaloOptions directly{Strategy::direct, Corners::no};

// ---- which way is taken

// Writes a profile for ranks that are threads: each names the same file.
class Profile {
 public:
  explicit Profile(std::string_view text) {
    const int file = mkstemp(path_.data());
    EXPECT_EQ(write(file, text.data(), text.size()), static_cast<ssize_t>(text.size()));
    close(file);
  }
  ~Profile() { std::remove(path_.c_str()); }
  Profile(const Profile&) = delete;
  Profile& operator=(const Profile&) = delete;

  // For the calling thread, as long as what it returns lives.
  class Use {
   public:
    explicit Use(const Profile& profile) : before_(settings::replace_environment(&look_up)) {
      here = profile.path_.c_str();
    }
    ~Use() { settings::replace_environment(before_); }
    Use(const Use&) = delete;
    Use& operator=(const Use&) = delete;

   private:
    static const char* look_up(const char* name) {
      return std::string_view(name) == "ROPEWALK_PROFILE" ? here : nullptr;
    }
    static thread_local const char* here;
    settings::Lookup before_;
  };

 private:
  std::string path_ = testing::TempDir() + "halo_profile_XXXXXX";
};
thread_local const char* Profile::Use::here = nullptr;

// The kernel copies every face, however small: random ones are.
const Profile& by_kernel() {
  static const Profile profile(
      "halo.kernel_bytes = 0\nhalo.kernel_small_pages_bytes = 0\nhalo.kernel_run_bytes = 0\n"
      "halo.worker_bytes = 1\n");
  return profile;
}

// Attaches memory of ranks that are threads: it is there already.
class SameMemory : public channel::Provider {
 public:
  channel::Segment own_segment(std::string&) override { return 1; }
  bool open(channel::Segment) override { return true; }
  void close(channel::Segment) noexcept override {}
  std::byte* attach(channel::Segment, std::uint64_t address, std::size_t bytes) override {
    ++attached;
    largest = std::max(largest, bytes);
    return refuses ? nullptr : reinterpret_cast<std::byte*>(address);
  }
  void detach(std::byte*, std::size_t) noexcept override {}

  int attached = 0;
  std::size_t largest = 0;  // of what was to be attached
  bool refuses = false;
};

class Attaching {
 public:
  Attaching() : cache_(provider, 64), before_(channel::replace_process_cache(&cache_)) {}
  ~Attaching() { channel::replace_process_cache(before_); }
  Attaching(const Attaching&) = delete;
  Attaching& operator=(const Attaching&) = delete;

  SameMemory provider;

 private:
  channel::RegistrationCache cache_;
  channel::RegistrationCache* before_;
};

enum class Way { staged, by_kernel, attached };

// ---- random fields

struct Private : testing::TestWithParam<std::tuple<int, Way>> {
  int ranks() const { return std::get<int>(GetParam()); }
  Way way() const { return std::get<Way>(GetParam()); }
};

void run_by(Way way, const HaloCase& halo) {
  std::optional<Profile::Use> kernel;
  std::optional<Attaching> attaching;
  if (way == Way::by_kernel) kernel.emplace(by_kernel());
  if (way == Way::attached) attaching.emplace();
  run_case(halo, Communicator::world());
}

// Element sizes, ghost widths, boundaries and corners are drawn; `arena` says where fields lie.
TEST_P(Private, RandomFieldsEqualTheGlobalArray) {
  for (std::uint64_t seed = 0; seed < 10; ++seed) {
    HaloCase halo = random_case(7000 + 10 * seed + static_cast<std::uint64_t>(ranks()), ranks());
    halo.strategy = seed % 5 == 4 ? Strategy::automatic : Strategy::direct;
    halo.arena = false;
    halo.rounds = 4;
    ASSERT_NO_THROW(run_ranks(ranks(), [&](int) { run_by(way(), halo); })) << halo.text();
  }
}

// One rank's fields are in the arena, the others' are not: each way to mix them.
TEST_P(Private, FieldsOfSomeRanksAreMapped) {
  HaloCase halo = random_case(static_cast<std::uint64_t>(ranks()), ranks());
  halo.strategy = Strategy::direct;
  halo.rounds = 4;
  for (int mapped = 0; mapped < std::min(ranks(), 3); ++mapped) {
    ASSERT_NO_THROW(run_ranks(ranks(), [&](int rank) {
      HaloCase own = halo;
      own.arena = rank == mapped;
      run_by(way(), own);
    })) << halo.text();
  }
}

std::string name_of(const testing::TestParamInfo<Private::ParamType>& one) {
  constexpr std::array<const char*, 3> names{"staged", "kernel", "attached"};
  return std::to_string(std::get<int>(one.param)) + "_" +
         names[static_cast<std::size_t>(std::get<Way>(one.param))];
}
INSTANTIATE_TEST_SUITE_P(Halo, Private,
                         testing::Combine(testing::Values(1, 2, 3, 4, 8),
                                          testing::Values(Way::staged, Way::by_kernel,
                                                          Way::attached)),
                         name_of);

// ---- a ring of two or more ranks, each with a private row of doubles

struct Ring {
  CartesianGrid grid;
  EndpointSet endpoints;
  std::vector<double> row;

  explicit Ring(std::size_t cells)
      : grid(Communicator::world(), {Communicator::world().size()}, {true}),
        endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false}),
        row(cells + 2) {}
  std::vector<Field> fields(double* data) const { return {{data, 8, {row.size() - 2}, {1}}}; }
  int size() const { return grid.size(); }

  static double value(int rank, int round) { return rank * 1000.0 + round; }
  void fill(int round) {
    for (double& cell : row) cell = value(grid.rank(), round);
    row.front() = row.back() = -1;
  }
  void check(int round) const {
    ASSERT_EQ(row.front(), value((grid.rank() + size() - 1) % size(), round));
    ASSERT_EQ(row.back(), value((grid.rank() + 1) % size(), round));
  }
};

// As with messages that are posted: a rank that has started may wait elsewhere, for somebody who
// waits for its faces.
void expect_wait_needs_a_start(Way way) {
  run_ranks(2, [&](int rank) {
    std::optional<Profile::Use> kernel;
    if (way == Way::by_kernel) kernel.emplace(by_kernel());
    Ring ring(4);
    Halo halo(ring.grid, ring.endpoints, ring.fields(ring.row.data()), directly);
    for (int round = 0; round < 50; ++round) {
      int word = 0;
      ring.fill(round);
      halo.start();
      if (rank == round % 2) {
        mpi::receive(&word, sizeof word, 1 - rank, 1, mpi::comm_world());
        halo.wait();
      } else {
        halo.wait();
        // What it sent is its own again, while the neighbour may not have looked.
        for (std::size_t i = 1; i <= 4; ++i) ring.row[i] = -2;
        mpi::send(&word, sizeof word, 1 - rank, 1, mpi::comm_world());
      }
      ring.check(round);
    }
  });
}

TEST(PrivateFields, WaitNeedsNoMoreThanAStart) {
  expect_wait_needs_a_start(Way::staged);
  expect_wait_needs_a_start(Way::by_kernel);
}

// A fast rank stages its next face while a slow one may still read the last.
TEST(PrivateFields, AFastRankOverwritesNothing) {
  run_ranks(3, [](int rank) {
    Ring ring(2);
    Halo halo(ring.grid, ring.endpoints, ring.fields(ring.row.data()), directly);
    for (int round = 0; round < 400; ++round) {
      ring.fill(round);
      halo.start();
      if ((round + rank) % 3 == 0) std::this_thread::yield();
      halo.wait();
      ring.check(round);
    }
  });
}

TEST(PrivateFields, EndWhileNeighboursHaveNotLooked) {
  run_ranks(2, [](int rank) {
    Ring ring(2);
    for (int round = 0; round < 20; ++round) {
      int word = 0;
      ring.fill(round);
      {
        Halo halo(ring.grid, ring.endpoints, ring.fields(ring.row.data()), directly);
        halo.start();
        if (rank == 1) mpi::receive(&word, sizeof word, 0, 1, mpi::comm_world());
      }
      // Rank 1 reads what rank 0 has staged in a halo that has ended.
      if (rank == 0) mpi::send(&word, sizeof word, 1, 1, mpi::comm_world());
      ring.check(round);
    }
  });
}

TEST(PrivateFields, LeaveNothingInTheArena) {
  run_ranks(2, [](int rank) {
    Ring ring(2);
    std::size_t before = 0;
    for (int i = 0; i < 10; ++i) {
      Halo halo(ring.grid, ring.endpoints, ring.fields(ring.row.data()),
                {i % 2 == 0 ? Strategy::direct : Strategy::automatic, Corners::no});
      halo.exchange();
      mpi::barrier(mpi::comm_world());
      if (rank == 0 && i == 0) before = Arena::process().statistics().live_bytes;
      if (rank == 0 && i % 2 == 0) {
        EXPECT_EQ(Arena::process().statistics().live_bytes, before);
      }
      mpi::barrier(mpi::comm_world());
    }
  });
}

TEST(PrivateFields, AreAttachedOnceForAllExchanges) {
  run_ranks(2, [](int) {
    Attaching attaching;
    Ring ring(100'000);
    Halo halo(ring.grid, ring.endpoints, ring.fields(ring.row.data()), directly);
    const int attached = attaching.provider.attached;
    EXPECT_GE(attaching.provider.largest, ring.row.size() * sizeof(double));
    for (int round = 0; round < 3; ++round) {
      ring.fill(round);
      halo.exchange();
      ring.check(round);
    }
    EXPECT_EQ(attaching.provider.attached, attached);
  });
}

// What the module does not attach the kernel copies.
TEST(PrivateFields, ThatCannotBeAttachedAreCopied) {
  run_ranks(2, [](int) {
    Attaching attaching;
    std::optional<Halo> halo;
    Ring ring(2);
    std::string reason;
    halo.emplace(ring.grid, ring.endpoints, ring.fields(ring.row.data()), directly);
    halo.reset();
    attaching.provider.refuses = true;
    std::vector<double> elsewhere(1 << 16);  // not attached yet
    halo.emplace(ring.grid, ring.endpoints, ring.fields(elsewhere.data()), directly);
    elsewhere[1] = elsewhere[2] = ring.grid.rank() + 1;
    halo->exchange();
    EXPECT_EQ(elsewhere[0], 2 - ring.grid.rank());
    EXPECT_EQ(elsewhere[3], 2 - ring.grid.rank());
  });
}

// Faces of 300000 bytes are divided: each worker hands parts of them to the kernel.
TEST(PrivatePackets, AreCopiedByAllWorkers) {
  run_ranks(2, [](int rank) {
    const Profile::Use kernel(by_kernel());
    Ring ring(2);
    constexpr std::size_t count = 75000;
    constexpr std::size_t bytes = count * sizeof(std::uint32_t);
    std::vector<std::uint32_t> send(2 * count);
    std::vector<std::uint32_t> receive(2 * count);
    const FacePackets faces{{send.data(), send.data() + count},
                            {receive.data(), receive.data() + count},
                            {bytes, bytes}};
    Halo halo(ring.grid, ring.endpoints, faces, {.strategy = Strategy::direct, .workers = 3});
    ThreadTeam team({.threads = 3, .pin = false});
    for (std::uint32_t round = 0; round < 10; ++round) {
      const auto value = [&](int of, std::size_t i) {
        return (round * 2 + static_cast<std::uint32_t>(of)) * 1000003U +
               static_cast<std::uint32_t>(i);
      };
      for (std::size_t i = 0; i < send.size(); ++i) send[i] = value(rank, i);
      team.run([&](int worker) {
        halo.start_worker(worker);
        halo.wait_worker(worker);
      });
      // What came from one side was sent towards the other.
      for (std::size_t i = 0; i < receive.size(); ++i) {
        ASSERT_EQ(receive[i], value(1 - rank, (i + count) % (2 * count)));
      }
    }
  });
}

// The packets are bytes, and one rank's send and another's receive buffers are private.
TEST(PrivatePackets, OfSomeRanksArrive) {
  for (const bool copied : {false, true}) {
    run_ranks(3, [&](int rank) {
      std::optional<Profile::Use> kernel;
      if (copied) kernel.emplace(by_kernel());
      Ring ring(2);
      constexpr std::size_t bytes = 5000;
      Buffer<unsigned char> shared(4 * bytes);
      std::vector<unsigned char> own(4 * bytes);
      unsigned char* send = rank == 1 ? own.data() : shared.data();
      unsigned char* receive = (rank == 2 ? own.data() : shared.data()) + 2 * bytes;
      const FacePackets faces{{send, send + bytes}, {receive, receive + bytes}, {bytes, bytes}};
      Halo halo(ring.grid, ring.endpoints, faces, directly);
      for (int round = 0; round < 4; ++round) {
        for (std::size_t i = 0; i < 2 * bytes; ++i) {
          send[i] = static_cast<unsigned char>(7 * rank + round + static_cast<int>(i / bytes));
        }
        halo.exchange();
        for (std::size_t i = 0; i < 2 * bytes; ++i) {
          const int side = static_cast<int>(i / bytes);
          const int from = (rank + (side == 0 ? 1 : 2)) % 3;
          ASSERT_EQ(receive[i], static_cast<unsigned char>(7 * from + round + 1 - side));
        }
      }
    });
  }
}

// ---- what the kernel refuses

std::string error_of(Halo& halo) {
  try {
    halo.exchange();
  } catch (const Error& error) {
    return error.what();
  }
  return "";
}

// The field of one rank is gone: whoever copies is refused, and nobody waits for ever.
TEST(PrivateFields, ThatAreGoneAreAnErrorOfAll) {
  for (const int gone : {0, 1}) {
    RunOptions options;
    options.check_leaks = false;
    std::array<std::string, 2> errors;
    run_ranks(
        2,
        [&](int rank) {
          const Profile::Use kernel(by_kernel());
          Ring ring(2);
          void* const page =
              mmap(nullptr, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
          auto* const data = static_cast<double*>(page);
          data[0] = 0;
          Halo halo(ring.grid, ring.endpoints, ring.fields(data), directly);
          halo.exchange();
          mpi::barrier(mpi::comm_world());
          // Not unmapped: another thread might map something there meanwhile.
          if (rank == gone) mprotect(page, 4096, PROT_NONE);
          mpi::barrier(mpi::comm_world());
          errors[static_cast<std::size_t>(rank)] = error_of(halo);
          EXPECT_THROW(halo.start(), Error);
          mpi::barrier(mpi::comm_world());
          munmap(page, 4096);
        },
        options);
    int refused = 0;
    for (const std::string& text : errors) {
      const bool kernel = text.find("the kernel refused a copy") != std::string::npos;
      const bool other = text.find("gave up an exchange") != std::string::npos;
      EXPECT_TRUE(kernel || other) << text;
      refused += kernel ? 1 : 0;
    }
    EXPECT_GE(refused, 1);
  }
}

// ---- which faces are staged

// Tells whether rank 0 of two stages its faces, which are alike. The ranks are neighbours where the
// field has ghosts.
bool stages(const Field& field) {
  static const Profile profile(
      "halo.kernel_bytes = 1000\nhalo.kernel_small_pages_bytes = 4000\n"
      "halo.kernel_run_bytes = 100\n");
  bool out = false;
  run_ranks(2, [&](int rank) {
    const Profile::Use used(profile);
    const bool rows = field.ghost[0] > 0;
    std::vector<int> extents(field.interior.size(), 1);
    extents[rows ? 0 : 1] = 2;
    std::vector<bool> periodic(extents.size(), false);
    periodic[rows ? 0 : 1] = true;
    const CartesianGrid grid(Communicator::world(), extents, periodic);
    EndpointSet endpoints(Communicator::world(), {.lanes = 1, .threads = false, .pin = false});
    const halo::HaloRequest request{grid, endpoints, directly, halo::Form::fields, {}, {field}};
    const auto facts = halo::agree_on_setup(request, {.messages = false, .team = true});
    if (!facts.team->cma()) GTEST_SKIP() << "process_vm_readv is not allowed here";
    const halo::StagedFaces staged = halo::staged_faces(request, facts);
    if (rank != 0) return;
    ASSERT_EQ(staged.at.size(), 2U);
    out = staged.at[0] != halo::StagedFaces::none;
    EXPECT_EQ(staged.at[1] != halo::StagedFaces::none, out);
    EXPECT_EQ(staged.bytes > 0, out);
  });
  return out;
}

constexpr std::size_t megabyte = std::size_t{1} << 20;

// A face of one run.
Field row(void* data, std::size_t bytes) { return {data, 1, {4, bytes}, {1, 0}}; }
// Returns one of several columns.
Field column(void* data, std::size_t count, std::size_t bytes) {
  return {data, bytes, {count, 4}, {0, 1}};
}

TEST(StagedFaces, FollowFromSizesAndRuns) {
  Buffer<std::byte> shared(megabyte);
  EXPECT_FALSE(stages(row(shared.data(), 10)));
  EXPECT_FALSE(stages(column(shared.data(), 100, 10)));
  std::vector<std::byte> own(megabyte);
  EXPECT_TRUE(stages(row(own.data(), 3999)));
  EXPECT_FALSE(stages(row(own.data(), 4000)));
  EXPECT_TRUE(stages(column(own.data(), 100, 99)));
  EXPECT_FALSE(stages(column(own.data(), 100, 100)));
}

// Short runs with few ghosts between them count as one.
TEST(StagedFaces, FollowFromGaps) {
  std::vector<std::byte> own(megabyte);
  const auto plane = [&](std::size_t runs, std::size_t bytes, std::size_t ghosts) {
    return Field{own.data(), 1, {4, runs, bytes}, {1, 1, ghosts}};
  };
  EXPECT_FALSE(stages(plane(60, 80, 1)));
  EXPECT_TRUE(stages(plane(60, 80, 40)));  // large gaps
  EXPECT_TRUE(stages(plane(100, 80, 1)));  // many short runs
}

TEST(StagedFaces, FollowFromPages) {
  constexpr std::size_t huge = 2 * megabyte;
  void* const memory =
      mmap(nullptr, 2 * huge, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  const auto begin = reinterpret_cast<std::uintptr_t>(memory);
  auto* const data = reinterpret_cast<std::byte*>((begin + huge - 1) / huge * huge);
  madvise(data, huge, MADV_HUGEPAGE);
  std::fill_n(data, huge, std::byte{1});
  if (!inspect(data, huge).all_huge()) GTEST_SKIP() << "no huge page for private memory";
  EXPECT_TRUE(stages(row(data, 999)));
  EXPECT_FALSE(stages(row(data, 1000)));
  EXPECT_TRUE(stages(column(data, 100, 99)));
  munmap(memory, 2 * huge);
}

}  // namespace
}  // namespace ropewalk::test
