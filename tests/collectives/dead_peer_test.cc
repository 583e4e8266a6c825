// A rank dies; every survivor gets an error that names it, wherever it waits.
//
// Ranks are processes forked here, since every launcher of MPI kills the others when one dies. The
// little MPI they need to meet is shared memory. The parent uses nothing of ropewalk that has
// state.
#include <gtest/gtest.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <cstring>
#include <string>
#include <vector>

#include "mpi/library.hpp"
#include "os/pidfd.hpp"
#include "ropewalk/collectives.hpp"

namespace ropewalk::test {
namespace {

constexpr int most_ranks = 5;
constexpr int victim = 1;
constexpr unsigned patience = 60;  // seconds: a rank that hangs dies of its alarm

// ---- an MPI of forked processes: one communicator, exchanges of a few bytes

struct Shared {
  pthread_barrier_t everybody;
  pthread_barrier_t survivors;
  std::array<std::array<std::byte, 4096>, most_ranks> exchange;
};
Shared* shared = nullptr;
int my_rank = 0;
int ranks = 0;

const mpi::Abi& abi() {
  static const mpi::Abi facts = mpi::abi_of(mpi::Family::standard, nullptr);
  return facts;
}

void meet() { pthread_barrier_wait(&shared->everybody); }

int exchange(const void* send, void* receive, std::size_t bytes) {
  if (bytes > shared->exchange[0].size()) return 1;
  std::memcpy(shared->exchange[my_rank].data(), send, bytes);
  meet();
  for (int rank = 0; rank < ranks; ++rank) {
    std::memcpy(static_cast<std::byte*>(receive) + rank * bytes, shared->exchange[rank].data(),
                bytes);
  }
  meet();
  return 0;
}

// Minima of 64-bit integers in place: what agreements are made of.
int minimum(void* values, int count) {
  std::vector<std::int64_t> all(static_cast<std::size_t>(count * ranks));
  const std::size_t bytes = static_cast<std::size_t>(count) * sizeof(std::int64_t);
  if (exchange(values, all.data(), bytes) != 0) return 1;
  auto* result = static_cast<std::int64_t*>(values);
  for (std::size_t i = 0; i < all.size(); ++i) {
    const std::size_t at = i % static_cast<std::size_t>(count);
    result[at] = std::min(result[at], all[i]);
  }
  return 0;
}

const mpi::Library* forked_mpi() {
  auto* library = new mpi::Library(abi(), "forks");
  mpi::Functions& call = library->call;
  call.initialized = [](int* flag) { return *flag = 1, 0; };
  call.finalized = [](int* flag) { return *flag = 0, 0; };
  call.query_thread = [](int* level) { return *level = abi().thread_levels[3], 0; };
  call.comm_rank = [](mpi::Word, int* rank) { return *rank = my_rank, 0; };
  call.comm_size = [](mpi::Word, int* size) { return *size = ranks, 0; };
  call.comm_dup = [](mpi::Word comm, mpi::Word* out) { return *out = comm, 0; };
  call.comm_free = [](mpi::Word* comm) { return *comm = abi().comm_null, 0; };
  call.comm_set_errhandler = [](mpi::Word, mpi::Word) { return 0; };
  call.barrier = [](mpi::Word) { return meet(), 0; };
  call.iprobe = [](int, int, mpi::Word, int* flag, mpi::Word) { return *flag = 0, 0; };
  call.allgather = [](const void* send, int bytes, mpi::Word, void* receive, int, mpi::Word,
                      mpi::Word) {
    return exchange(send, receive, static_cast<std::size_t>(bytes));
  };
  call.allreduce = [](const void*, void* values, int count, mpi::Word, mpi::Word op, mpi::Word) {
    return op == abi().op(mpi::OpName::min) ? minimum(values, count) : 1;
  };
  return library;
}

// ---- a rank

enum Exit { good = 0, no_error = 1, wrong_error = 2, not_direct = 3 };

using Call = void (*)(NodeCommunicator&);

int outcome_of(NodeCommunicator& communicator, Call call) {
  try {
    call(communicator);
    communicator.barrier();  // a call that need not wait for the dead comes back
    return no_error;
  } catch (const Error& error) {
    const bool names = std::string(error.what()).find("rank 1 ") != std::string::npos;
    if (error.code() == ErrorCode::peer_dead && names) return good;
    std::fprintf(stderr, "rank %d: %s\n", my_rank, error.what());
    return wrong_error;
  }
}

int live(Call call, bool dies_waiting) {
  mpi::exchange_library(forked_mpi());
  NodeCommunicator communicator(Communicator::world());
  if (!communicator.direct()) return not_direct;
  communicator.barrier();
  if (my_rank == victim) {
    // Another way to die: in the call, most often while the others have not come yet.
    if (dies_waiting) {
      alarm(0);
      std::signal(SIGALRM, SIG_DFL);
      ualarm(20000, 0);
      call(communicator);
    }
    raise(SIGKILL);
  }
  if (dies_waiting) usleep(100000);
  const int outcome = outcome_of(communicator, call);
  // Who leaves is as dead as the victim: nobody does before all have seen what they see.
  pthread_barrier_wait(&shared->survivors);
  return outcome;
}

// ---- the parent

void make_barrier(pthread_barrier_t& barrier, int count) {
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&barrier, &attributes, static_cast<unsigned>(count));
  pthread_barrierattr_destroy(&attributes);
}

// The exit codes of all ranks; the victim's is -1.
std::vector<int> run(int count, Call call, bool dies_waiting) {
  shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  make_barrier(shared->everybody, count);
  make_barrier(shared->survivors, count - 1);
  ranks = count;
  std::vector<pid_t> children;
  for (my_rank = 0; my_rank < count; ++my_rank) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(patience);
      _exit(live(call, dies_waiting));
    }
    children.push_back(child);
  }
  std::vector<int> codes;
  for (const pid_t child : children) {
    int status = 0;
    waitpid(child, &status, 0);
    codes.push_back(WIFEXITED(status) ? WEXITSTATUS(status) : -1);
  }
  munmap(shared, sizeof(Shared));
  return codes;
}

struct Situation {
  const char* name;
  Call call;
};

std::vector<double> numbers(std::size_t count) { return std::vector<double>(count, 1.0); }

const Situation situations[] = {
    {"barrier", [](NodeCommunicator& on) { on.barrier(); }},
    {"small_allreduce",
     [](NodeCommunicator& on) {
       double value = 1;
       on.allreduce(in_place, &value, 1, ElementType::float64, ReductionOp::sum);
     }},
    {"large_allreduce",
     [](NodeCommunicator& on) {
       auto values = numbers(100000);
       on.allreduce(in_place, values.data(), values.size(), ElementType::float64, ReductionOp::sum);
     }},
    {"broadcast_of_the_dead",
     [](NodeCommunicator& on) {
       auto values = numbers(100000);
       on.broadcast(values.data(), values.size() * sizeof(double), victim);
     }},
    {"gather_at_the_dead",
     [](NodeCommunicator& on) {
       auto values = numbers(10000);
       auto results = numbers(10000 * most_ranks);
       on.gather(values.data(), results.data(), values.size() * sizeof(double), victim);
     }},
    {"alltoall",
     [](NodeCommunicator& on) {
       auto values = numbers(5000 * most_ranks);
       auto results = values;
       on.alltoall(values.data(), results.data(), 5000 * sizeof(double));
     }},
    {"nonblocking", [](NodeCommunicator& on) {
       auto values = numbers(10);
       on.start_allreduce(in_place, values.data(), values.size(), ElementType::float64,
                          ReductionOp::sum)
           .wait();
     }}};

class DeadPeer : public testing::TestWithParam<Situation> {};

TEST_P(DeadPeer, IsNamedToEverySurvivor) {
  if (!os::open_pidfd(getpid())) GTEST_SKIP() << "no pidfd on this kernel";
  for (const int count : {3, most_ranks}) {
    for (const bool dies_waiting : {false, true}) {
      const std::vector<int> codes = run(count, GetParam().call, dies_waiting);
      if (codes[0] == not_direct) GTEST_SKIP() << "processes here cannot reach each other's memory";
      for (int rank = 0; rank < count; ++rank) {
        EXPECT_EQ(codes[rank], rank == victim ? -1 : static_cast<int>(good))
            << "rank " << rank << " of " << count << (dies_waiting ? ", died waiting" : "");
      }
    }
  }
}

INSTANTIATE_TEST_SUITE_P(In, DeadPeer, testing::ValuesIn(situations),
                         [](const auto& instance) { return instance.param.name; });

}  // namespace
}  // namespace ropewalk::test
