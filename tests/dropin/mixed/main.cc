// Random programs that mix messages, one-sided communication and collectives: valid by the MPI
// standard, decided by a seed, the same on every rank. Nothing of ropewalk is in it: it is run
// plainly and under the drop-in, and must print the same.
//
//   mixed --seeds A..B,C,... [--actions N] [--limit S] [--linger S] [--show] [--no-windows]
//         [--synchronous] [--multiple]
//
// For each seed rank 0 prints a line with the digest of all bytes that each rank has received. What
// arrives is checked besides; the status is 1 where anything was wrong. A seed that takes longer
// than the limit (seconds; 60) is a hang: every rank then says where it stands and ends after
// `linger` seconds (0) with status 1. --show prints the steps. --synchronous has every send wait
// for its receive, on which no schedule may depend. --multiple asks for MPI_THREAD_MULTIPLE.
// Seeds without windows come first: an MPI, or what is under test, may go on in another way once
// there has been one.
#include <sched.h>

#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <string>
#include <vector>

#include "actions.hpp"

namespace mixed {

namespace {

struct Options {
  std::vector<std::uint64_t> seeds;
  std::size_t actions = 30;
  unsigned limit = 60, linger = 0;
  bool show = false, windows = true, multiple = false;
};

constexpr int buffered_bytes = 8 << 20;  // of all MPI_Bsend of a seed

bool has_windows(std::uint64_t seed) { return seed % 3 == 0; }

void add_action(Schedule& schedule, const World& world, bool windows) {
  const std::size_t drawn = schedule.random.below(100);
  if (windows && drawn < 12) return add_window(schedule, world);
  if (drawn < 31) return add_collective(schedule, world);
  if (drawn < 53) return add_messages(schedule, world);
  if (drawn < 60) return add_pending_collective(schedule, world);
  if (drawn < 69) return add_operations(schedule, world);
  if (drawn < 75) return add_neighbours(schedule, world);
  if (drawn < 79) return add_shift(schedule, world);
  if (drawn < 83) return add_persistent(schedule, world);
  if (drawn < 87) return add_persistent_batch(schedule, world);
  if (drawn < 90) return add_partitioned(schedule, world);
  if (drawn < 93) return add_cancelled(schedule, world);
  if (drawn < 95) return add_made_communicator(schedule, world);
  add_work(schedule, false);
}

// A schedule has three parts; between them all ranks meet, so that messages from anybody of one
// part cannot be taken for those of another.
void plan(Schedule& schedule, const World& world, const Options& options, bool windows) {
  constexpr int parts = 3;
  for (std::size_t i = 0; i < options.actions; ++i) add_action(schedule, world, windows);
  if (schedule.random.chance(50)) add_work(schedule, true);
  for (int part = 0; part < parts; ++part) {
    const double from = part / double{parts}, to = (part + 1) / double{parts};
    for (const Comm& comm : world.exclusive) {
      if (schedule.random.chance(60)) add_anything(schedule, comm, from, to);
    }
    schedule.add(to, world.comms[0].ranks(), "Barrier of all", [] { MPI_Barrier(MPI_COMM_WORLD); });
  }
  schedule.sort();
}

// Ranks that plan different things would hang for that reason, and not for a fault of the MPI.
void check_plan(const Schedule& schedule) {
  std::uint64_t own[2] = {schedule.hash(), ~schedule.hash()}, least[2];
  PMPI_Allreduce(own, least, 2, MPI_UINT64_T, MPI_MIN, MPI_COMM_WORLD);
  expect(least[0] == own[0] && least[1] == own[1], "all ranks have planned the same");
}

void report(std::uint64_t seed, std::size_t steps) {
  std::vector<std::uint64_t> all(static_cast<std::size_t>(world_size));
  const std::uint64_t own = digest();
  PMPI_Gather(&own, 1, MPI_UINT64_T, all.data(), 1, MPI_UINT64_T, 0, MPI_COMM_WORLD);
  if (world_rank != 0) return;
  std::printf("seed %llu: %zu steps, digests", static_cast<unsigned long long>(seed), steps);
  for (const std::uint64_t one : all) std::printf(" %016llx", static_cast<unsigned long long>(one));
  std::printf("\n");
  std::fflush(stdout);
}

void run(std::uint64_t seed, const World& world, const Options& options) {
  enter(seed, 0, "planning");
  watch(options.limit, options.linger);
  Random random(seed * most_ranks + static_cast<std::uint64_t>(world_size));
  Schedule schedule(random);
  plan(schedule, world, options, options.windows && has_windows(seed));
  if (options.show && world_rank == 0) schedule.show();
  check_plan(schedule);
  reset_digest();
  std::vector<char> buffered(buffered_bytes);
  MPI_Buffer_attach(buffered.data(), buffered_bytes);
  schedule.execute(seed);
  enter(seed, schedule.steps(), "the end");
  void* detached = nullptr;
  int bytes = 0;
  MPI_Buffer_detach(&detached, &bytes);
  MPI_Barrier(MPI_COMM_WORLD);
  report(seed, schedule.steps());
  watch(0, 0);
}

// Collectives on a new communicator may be treated otherwise than later ones.
void warm_up(const World& world) {
  for (const Comm& comm : world.comms) {
    for (int i = 0; comm.own != nullptr && i < 4; ++i) MPI_Barrier(comm.handle);
  }
}

void run_all(const Options& options) {
  World world{make_comms(), make_exclusive_comms(2)};
  for (Comm& comm : world.comms) find_own(comm);
  make_layouts();
  make_operations();
  // Past the start of the MPI, before the drop-in makes its teams.
  if (world_rank == 0) {
    std::printf("mixed: begins\n");
    std::fflush(stdout);
  }
  warm_up(world);
  for (const bool windows : {false, true}) {
    for (const std::uint64_t seed : options.seeds) {
      if (has_windows(seed) == windows) run(seed, world, options);
    }
  }
  free_operations();
  free_layouts();
  free_comms(world.comms);
  free_comms(world.exclusive);
}

std::vector<std::uint64_t> seeds_of(const char* text) {
  std::vector<std::uint64_t> seeds;
  for (char* end = nullptr; *text != '\0'; text = end + (*end == ',')) {
    const std::uint64_t first = std::strtoull(text, &end, 10);
    if (end == text) return {};
    const bool range = std::strncmp(end, "..", 2) == 0;
    const std::uint64_t last = range ? std::strtoull(end + 2, &end, 10) : first;
    for (std::uint64_t seed = first; seed <= last; ++seed) seeds.push_back(seed);
  }
  return seeds;
}

bool read(int argc, char** argv, Options& options) {
  for (int i = 1; i < argc; ++i) {
    const std::string name = argv[i];
    if (name == "--show") {
      options.show = true;
    } else if (name == "--synchronous") {
      synchronous = true;
    } else if (name == "--multiple") {
      options.multiple = true;
    } else if (name == "--no-windows") {
      options.windows = false;
    } else if (i + 1 == argc) {
      return false;
    } else if (const char* value = argv[++i]; name == "--seeds") {
      options.seeds = seeds_of(value);
    } else if (name == "--actions") {
      options.actions = std::strtoull(value, nullptr, 10);
    } else if (name == "--limit") {
      options.limit = static_cast<unsigned>(std::strtoul(value, nullptr, 10));
    } else if (name == "--linger") {
      options.linger = static_cast<unsigned>(std::strtoul(value, nullptr, 10));
    } else {
      return false;
    }
  }
  return !options.seeds.empty();
}

}  // namespace

void add_work(Schedule& schedule, bool long_one) {
  Random& random = schedule.random;
  const int rank = static_cast<int>(random.below(static_cast<std::size_t>(world_size)));
  const auto us =
      static_cast<long>(long_one ? random.between(15000, 40000) : random.between(50, 3000));
  schedule.add(schedule.begin(), rank, "away for " + std::to_string(us) + " us", [us] {
    const timespec time{0, us * 1000};
    nanosleep(&time, nullptr);
  });
}

}  // namespace mixed

int main(int argc, char** argv) {
  mixed::Options options;
  const bool understood = mixed::read(argc, argv, options);
  int provided = 0;
  MPI_Init_thread(&argc, &argv, options.multiple ? MPI_THREAD_MULTIPLE : MPI_THREAD_SINGLE,
                  &provided);
  MPI_Comm_rank(MPI_COMM_WORLD, &mixed::world_rank);
  MPI_Comm_size(MPI_COMM_WORLD, &mixed::world_size);
  if (!understood || mixed::world_size > mixed::most_ranks) {
    if (mixed::world_rank == 0) std::fprintf(stderr, "mixed: see the head of main.cc\n");
    MPI_Abort(MPI_COMM_WORLD, 2);
  }
  mixed::tell_errors();
  mixed::run_all(options);
  int failures = mixed::failures(), all = 0;
  PMPI_Allreduce(&failures, &all, 1, MPI_INT, MPI_SUM, MPI_COMM_WORLD);
  MPI_Finalize();
  return all == 0 ? 0 : 1;
}
