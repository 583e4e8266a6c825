// differential_program [--cases N] [--seed S] [--only K] [--verbose 1]: random collectives through
// the C interface, each compared with the same call of the MPI underneath, byte for byte.
//
// Every rank draws the same cases. The first that differs is named by one rank, with what runs it
// again, and every rank exits with 1. A case that hangs ends the job after a time, named too.
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <string>
#include <vector>

#include "collectives/differential_case.hpp"
#include "ropewalk/process.hpp"

namespace {

using namespace ropewalk;
using namespace ropewalk::test;

struct Options {
  std::uint64_t cases = 200;
  std::uint64_t seed = 1;
  std::int64_t only = -1;
  bool verbose = false;
};

Options parse(int argc, char** argv) {
  Options options;
  for (int i = 1; i + 1 < argc; i += 2) {
    const std::string name = argv[i];
    const std::uint64_t value = std::strtoull(argv[i + 1], nullptr, 0);
    if (name == "--cases") options.cases = value;
    if (name == "--seed") options.seed = value;
    if (name == "--verbose") options.verbose = value != 0;
    if (name == "--only") options.only = static_cast<std::int64_t>(value);
  }
  return options;
}

// ---- a hang

constexpr unsigned patience = 240;  // seconds for the whole program
std::array<char, 512> under_way{};

void say_and_leave(int) {
  const char text[] = "differential: too slow, or hangs in ";
  (void)!write(STDERR_FILENO, text, sizeof text - 1);
  (void)!write(STDERR_FILENO, under_way.data(), std::strlen(under_way.data()));
  _exit(1);
}

// ---- communicators

class Communicators {
 public:
  explicit Communicators(std::uint64_t seed) {
    const int rank = mpi::rank(mpi::comm_world());
    const auto draw = [&](std::uint64_t what) {
      std::mt19937_64 random(seed + what);
      for (int i = 0; i < rank; ++i) random();
      return static_cast<int>(random() % 1000);
    };
    add("world", mpi::comm_world());
    add("a duplicate", own(mpi::dup(mpi::comm_world())));
    add("reversed", own(mpi::split(mpi::comm_world(), 0, -rank)));
    add("a part in two", own(mpi::split(mpi::comm_world(), draw(1) % 2, draw(2))));
    add("a part in three", own(mpi::split(mpi::comm_world(), draw(3) % 3, draw(4))));
  }
  ~Communicators() {
    for (Pair& pair : pairs) rw_comm_free(pair.rw);
    for (mpi::Comm& comm : own_) mpi::free(comm);
  }
  Communicators(const Communicators&) = delete;
  Communicators& operator=(const Communicators&) = delete;

  std::vector<Pair> pairs;

 private:
  mpi::Comm own(mpi::Comm comm) { return own_.emplace_back(comm); }
  void add(const char* name, mpi::Comm comm) {
    Pair pair{name, comm, nullptr, mpi::rank(comm), mpi::size(comm)};
    int direct = 0;
    if (rw_comm_create(comm.value, &pair.rw) != RW_SUCCESS ||
        rw_comm_direct(pair.rw, &direct) != RW_SUCCESS || direct == 0) {
      throw Error(ErrorCode::unsupported, std::string("no direct collectives: ") + rw_last_error());
    }
    pairs.push_back(pair);
  }
  std::vector<mpi::Comm> own_;
};

// ---- the cases

constexpr std::uint64_t cases_a_round = 50;  // then communicators are made anew

struct Failure {
  std::string text;  // "" on ranks that found nothing
};

void run_one(const Catalogue& catalogue, const Communicators& communicators, const Options& options,
             std::uint64_t index, Failure& failure) {
  const std::uint64_t seed = options.seed * 1000003 + index;
  const Differential drawn(catalogue, seed, communicators.pairs.size());
  const Pair& on = communicators.pairs[drawn.communicator];
  const std::string text = drawn.text(catalogue, on);
  std::snprintf(under_way.data(), under_way.size(), "case %llu of seed %llu: %s\n",
                static_cast<unsigned long long>(index),
                static_cast<unsigned long long>(options.seed), text.c_str());
  if (options.verbose && on.rank == 0) std::fputs(under_way.data(), stderr);
  const std::string difference = run(catalogue, drawn, on);
  if (difference.empty() || !failure.text.empty()) return;
  failure.text = "rank " + std::to_string(on.rank) + ": " + difference + "\n  in " +
                 under_way.data() + "  again: --seed " + std::to_string(options.seed) + " --only " +
                 std::to_string(index) + "\n";
}

// What MPI refuses, or the test itself: the other ranks are in the call, so the job ends.
[[noreturn]] void give_up(const Error& error) {
  std::fprintf(stderr, "differential: %s\n  in %s", error.what(), under_way.data());
  std::fflush(stderr);
  mpi::abort(EXIT_FAILURE);
}

// True when no rank has failed; else one rank has said what.
bool agree(const Failure& failure) {
  const int rank = mpi::rank(mpi::comm_world());
  std::array<std::int64_t, 1> first{failure.text.empty() ? INT64_MAX : rank};
  mpi::all_reduce(first, mpi::Combine::min, mpi::comm_world());
  if (first[0] == rank) std::fputs(failure.text.c_str(), stderr);
  return first[0] == INT64_MAX;
}

bool run_cases(const Options& options) {
  const Catalogue catalogue;
  Failure failure;
  for (std::uint64_t begin = 0; begin < options.cases; begin += cases_a_round) {
    const auto only = static_cast<std::uint64_t>(options.only);
    const std::uint64_t end = std::min(begin + cases_a_round, options.cases);
    if (options.only >= 0 && (only < begin || only >= end)) continue;
    const Communicators communicators(options.seed + begin);
    for (std::uint64_t index = begin; index < end; ++index) {
      if (options.only >= 0 && index != only) continue;
      try {
        run_one(catalogue, communicators, options, index, failure);
      } catch (const Error& error) {
        give_up(error);
      }
    }
    if (!agree(failure)) return false;
  }
  return true;
}

}  // namespace

int main(int argc, char** argv) {
  std::signal(SIGALRM, say_and_leave);
  alarm(patience);
  try {
    const Process process;
    Options options = parse(argc, argv);
    if (options.only >= 0) {
      options.cases = std::max(options.cases, static_cast<std::uint64_t>(options.only) + 1);
    }
    return run_cases(options) ? EXIT_SUCCESS : EXIT_FAILURE;
  } catch (const Error& error) {
    std::fprintf(stderr, "differential: %s\n", error.what());
    return EXIT_FAILURE;
  }
}
