// Tests the error handlers that a program has set on its communicators are restored when nobody
// needs errors returned any more. Several guards exist at once, nested or on several threads.
#include "mpi/errors_returned.hpp"

#include <gtest/gtest.h>

#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <thread>
#include <vector>

#include "mpi/library.hpp"
#include "ropewalk/error.hpp"
#include "support/thread_mpi_world.hpp"

namespace ropewalk::test {
namespace {

using mpi::Comm;
using mpi::ErrorsReturned;
using mpi::Word;

constexpr Word of_program = 0x5001;
constexpr Word of_program_later = 0x5002;
constexpr Comm first{0x101};
constexpr Comm second{0x102};

// This MPI has nothing but error handlers.
std::mutex lock;
std::map<Word, Word> handlers;
int references = 0;
int refused_sets = 0;  // still to come

int get_handler(Word comm, Word* handler) {
  const std::lock_guard here(lock);
  *handler = handlers[comm];
  ++references;
  return 0;
}
int set_handler(Word comm, Word handler) {
  const std::lock_guard here(lock);
  if (refused_sets > 0 && refused_sets-- > 0) return 1;
  handlers[comm] = handler;
  return 0;
}
int free_handler(Word* handler) {
  const std::lock_guard here(lock);
  --references;
  *handler = 0;
  return 0;
}
int error_string(int, char* text, int* length) {
  text[0] = '\0';
  *length = 0;
  return 0;
}

class ErrorHandlers : public testing::Test {
 protected:
  ErrorHandlers() : library_(abi(), "none"), before_(mpi::exchange_library(&library_)) {
    library_.call.comm_get_errhandler = &get_handler;
    library_.call.comm_set_errhandler = &set_handler;
    library_.call.errhandler_free = &free_handler;
    library_.call.error_string = &error_string;
    handlers = {{first.value, of_program}, {second.value, of_program}};
    references = 0;
  }
  ~ErrorHandlers() override {
    EXPECT_EQ(references, 0) << "handlers that MPI keeps for us";
    mpi::exchange_library(before_);
  }
  static bool returned(Comm comm) { return handlers[comm.value] == mpi::errors_return(); }

 private:
  mpi::Library library_;
  const mpi::Library* before_;
};

TEST_F(ErrorHandlers, ComeBackWithTheLastGuard) {
  std::optional<ErrorsReturned> one;
  std::optional<ErrorsReturned> other;
  one.emplace(first);
  other.emplace(first);
  EXPECT_TRUE(returned(first));
  EXPECT_FALSE(returned(second));
  one.reset();
  EXPECT_TRUE(returned(first)) << "the other guard still stands";
  other.reset();
  EXPECT_EQ(handlers[first.value], of_program);
}

TEST_F(ErrorHandlers, OfTwoCommunicatorsAreKeptApart) {
  handlers[second.value] = of_program_later;
  std::optional<ErrorsReturned> one{std::in_place, first};
  std::optional<ErrorsReturned> other{std::in_place, second};
  one.reset();
  EXPECT_EQ(handlers[first.value], of_program);
  EXPECT_TRUE(returned(second));
  other.reset();
  EXPECT_EQ(handlers[second.value], of_program_later);
}

TEST_F(ErrorHandlers, ThatTheProgramSetsMeanwhileStay) {
  {
    const ErrorsReturned guard(first);
    set_handler(first.value, of_program_later);
  }
  EXPECT_EQ(handlers[first.value], of_program_later);
}

TEST_F(ErrorHandlers, AGuardThatFailsLeavesNothingBehind) {
  refused_sets = 1;
  EXPECT_THROW(ErrorsReturned{first}, Error);
  EXPECT_EQ(handlers[first.value], of_program);
  { const ErrorsReturned guard(first); }
  EXPECT_EQ(handlers[first.value], of_program);
}

TEST_F(ErrorHandlers, OfManyThreadsAtOnce) {
  std::atomic<int> wrong{0};
  std::vector<std::thread> threads;
  for (int number = 0; number < 4; ++number) {
    threads.emplace_back([&, number] {
      for (int round = 0; round < 3000; ++round) {
        const ErrorsReturned outer(number % 2 == 0 ? first : second);
        const ErrorsReturned inner(first);
        const std::lock_guard here(lock);
        if (!returned(first)) ++wrong;
      }
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(wrong, 0);
  EXPECT_EQ(handlers[first.value], of_program);
  EXPECT_EQ(handlers[second.value], of_program);
}

}  // namespace
}  // namespace ropewalk::test
