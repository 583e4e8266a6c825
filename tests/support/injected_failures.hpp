// Calls that fail on one rank: operator new, and outside of sanitizers mmap, memfd_create, open and
// pthread_create, counted together. Programs that use it compile injected_failures.cc in: it
// replaces them for the whole program.
#pragma once

#include <gtest/gtest.h>
#include <unistd.h>

#include <array>
#include <exception>
#include <optional>
#include <string>
#include <utility>

#include "mpi/library.hpp"
#include "mpi/mpi.hpp"
#include "ropewalk/error.hpp"
#include "support/effort.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {

// The call of that number from here on fails, of those that this thread makes outside of MPI.
void fail_call(int number) noexcept;
// Nothing fails any more. Which call has failed, or empty: fewer were made.
std::string end_failing() noexcept;

// The next `times` calls of open for writing, by this thread, fail with that errno. It does not
// work under sanitizers.
void fail_open(int code, int times) noexcept;
int opens_that_fail() noexcept;  // still to come

// Nothing of this thread fails, nor is counted, until it ends.
class Exempt {
 public:
  Exempt() noexcept;
  ~Exempt() { end(); }
  Exempt(const Exempt&) = delete;
  Exempt& operator=(const Exempt&) = delete;
  void end() noexcept;

 private:
  bool open_ = true;
};

// Returns the same library, whose functions mark their time as MPI's own: nothing fails there.
const mpi::Library* failing_library(const mpi::Library& of);

// What a rank has made of one attempt.
struct Attempt {
  std::string error;     // empty: it has made it
  bool foreign = false;  // the error was none of ropewalk's
};

// Makes a T in its place, whether it can be moved or not.
template <class Make>
struct InPlace {
  const Make& make;
  operator auto() const { return make(); }  // NOLINT: implicit, that is the purpose
};
template <class Make>
InPlace(const Make&) -> InPlace<Make>;  // Clang 14 deduces none for an aggregate

template <class Make>
Attempt attempt(Make&& make) {
  try {
    make();
    return {};
  } catch (const Error& error) {
    return {error.what()};
  } catch (const std::exception& error) {
    return {error.what(), true};
  }
}

// Ranks as threads call make(rank, given), where `given` is what prepare(rank) returns, again and
// again: in the n-th attempt the n-th call fails on rank `failing`, until there are fewer. Each
// time all ranks get an Error or none does, after which use(rank, made) must go well for what is
// made without failures.
template <class Prepare, class Make, class Use>
void expect_joint_errors(int ranks, int failing, Prepare prepare, Make make, Use use) {
  constexpr unsigned patience_s = 120;  // a hang that the MPI of threads cannot see
  std::array<Attempt, 8> outcomes;
  std::string failed = "none yet";
  int attempts = 0;
  const mpi::Library* plain = nullptr;
  const auto alone = [](int rank, auto body) {
    mpi::barrier(mpi::comm_world());
    if (rank == 0) body();
    mpi::barrier(mpi::comm_world());
  };
  alarm(patience_s);
  run_ranks(ranks, [&](int rank) {
    alone(rank, [&] {
      plain = &mpi::library();
      mpi::exchange_library(failing_library(*plain));
    });
    {
      auto given = prepare(rank);
      if (auto made = make(rank, given); true)
        use(rank, made);  // what is made once a process is made
      const auto make_here = [&] { return make(rank, given); };
      for (int number = 1; !failed.empty(); number += sanitized ? 3 : 1) {
        mpi::barrier(mpi::comm_world());
        std::optional<decltype(make(rank, given))> made;
        if (rank == failing) fail_call(number);
        Attempt own = attempt([&] { made.emplace(InPlace{make_here}); });
        std::string here;
        if (rank == failing) here = end_failing();
        outcomes[static_cast<std::size_t>(rank)] = std::move(own);
        alone(rank, [] {});
        if (rank == failing) {
          failed = here;
          ++attempts;
        }
        const Attempt& first = outcomes[0];
        for (int other = 0; other < ranks; ++other) {
          const Attempt& one = outcomes[static_cast<std::size_t>(other)];
          ASSERT_FALSE(one.foreign) << one.error << " on rank " << other << ", " << here;
          ASSERT_EQ(one.error, first.error) << "call " << number << ", " << here;
        }
        if (!made) made.emplace(InPlace{make_here});
        use(rank, *made);
        made.reset();
        mpi::barrier(mpi::comm_world());
      }
    }
    alone(rank, [&] { mpi::exchange_library(plain); });
  });
  alarm(0);
  EXPECT_GT(attempts, 1) << "nothing has failed";
  testing::Test::RecordProperty("attempts", attempts);
}

}  // namespace ropewalk::test
