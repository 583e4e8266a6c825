// Tests lanes of an MPI that splits threads: every duplicate gets its lane's number, the same on
// all ranks, and 0 stays the caller's.
#include "mpi/thread_split.hpp"

#include <gtest/gtest.h>

#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <mutex>
#include <string>
#include <vector>

#include "mpi/library.hpp"
#include "ropewalk/endpoint.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::test {
namespace {

using mpi::Word;

std::mutex lock;
std::map<Word, std::string> infos;  // "key=value" of each info object
std::vector<std::string> numbered;  // in the order of MPI_Comm_set_info

int create(Word* info) {
  const std::lock_guard guard(lock);
  *info = infos.size() + 1;
  infos[*info];
  return 0;
}

int set(Word info, const char* key, const char* value) {
  const std::lock_guard guard(lock);
  infos[info] = std::string(key) + "=" + value;
  return 0;
}

int number(Word, Word info) {
  const std::lock_guard guard(lock);
  numbered.push_back(infos[info]);
  return 0;
}

int forget(Word*) { return 0; }

int intel_version(char* text, int* length) {
  const std::string version = "Intel(R) MPI Library 2021.19 for Linux* OS";
  std::strcpy(text, version.c_str());
  *length = static_cast<int>(version.size());
  return 0;
}

// Returns what the ranks number when they make sets of these lanes, in an MPI that is Intel's or
// not.
std::vector<std::string> numbers(int ranks, int lanes, bool intel = true) {
  infos.clear();
  numbered.clear();
  run_ranks(ranks, [&](int rank) {
    mpi::Functions& call = const_cast<mpi::Library&>(mpi::library()).call;
    const mpi::Functions before = call;
    mpi::barrier(mpi::comm_world());
    if (rank == 0) {
      call.info_create = create;
      call.info_set = set;
      call.info_free = forget;
      call.comm_set_info = number;
      if (intel) call.get_library_version = intel_version;
    }
    mpi::barrier(mpi::comm_world());
    { const EndpointSet endpoints(Communicator::world(), {.lanes = lanes}); }
    mpi::barrier(mpi::comm_world());
    if (rank == 0) call = before;
  });
  std::sort(numbered.begin(), numbered.end());
  return numbered;
}

class ThreadSplit : public testing::Test {
 protected:
  void SetUp() override {
    setenv("I_MPI_THREAD_SPLIT", "1", 1);
    setenv("I_MPI_THREAD_MAX", "5", 1);
  }
  void TearDown() override {
    for (const char* name : {"I_MPI_THREAD_SPLIT", "I_MPI_THREAD_MAX", "I_MPI_THREAD_ID_KEY"}) {
      unsetenv(name);
    }
  }
};

TEST_F(ThreadSplit, EveryLaneHasANumberAndTheCallerKeepsZero) {
  EXPECT_EQ(numbers(2, 4),
            (std::vector<std::string>{"thread_id=1", "thread_id=1", "thread_id=2", "thread_id=2",
                                      "thread_id=3", "thread_id=3", "thread_id=4", "thread_id=4"}));
}

TEST_F(ThreadSplit, MoreLanesThanNumbersShareThem) {
  setenv("I_MPI_THREAD_MAX", "3", 1);
  setenv("I_MPI_THREAD_ID_KEY", "own", 1);
  EXPECT_EQ(numbers(1, 3), (std::vector<std::string>{"own=1", "own=1", "own=2"}));
}

TEST_F(ThreadSplit, NothingIsNumberedWithoutIt) {
  EXPECT_TRUE(numbers(2, 2, false).empty());
  setenv("I_MPI_THREAD_MAX", "1", 1);
  EXPECT_TRUE(numbers(2, 2).empty());
  setenv("I_MPI_THREAD_SPLIT", "0", 1);
  setenv("I_MPI_THREAD_MAX", "5", 1);
  EXPECT_TRUE(numbers(2, 2).empty());
}

}  // namespace
}  // namespace ropewalk::test
