#include "support/forked_ranks.hpp"

#include <pthread.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <cstring>

#include "mpi/library.hpp"

namespace ropewalk::test {
namespace {

constexpr unsigned patience_s = 60;

// One communicator, exchanges of a few bytes.
struct Shared {
  pthread_barrier_t everybody;
  std::atomic<int> met;
  std::array<std::array<std::byte, 4096>, most_forked_ranks> exchange;
  std::array<std::atomic<pid_t>, most_forked_ranks> process;
};
Shared* shared = nullptr;
int my_rank = 0;
int ranks = 0;

const mpi::Abi& abi() {
  static const mpi::Abi facts = mpi::abi_of(mpi::Family::standard, nullptr);
  return facts;
}

void meet_everybody() { pthread_barrier_wait(&shared->everybody); }

int exchange(const void* send, void* receive, std::size_t bytes) {
  if (bytes > shared->exchange[0].size()) return 1;
  std::memcpy(shared->exchange[static_cast<std::size_t>(my_rank)].data(), send, bytes);
  meet_everybody();
  for (std::size_t rank = 0; rank < static_cast<std::size_t>(ranks); ++rank) {
    std::memcpy(static_cast<std::byte*>(receive) + rank * bytes, shared->exchange[rank].data(),
                bytes);
  }
  meet_everybody();
  return 0;
}

// Computes minima of 64-bit integers in place, of which agreements are made.
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
  call.barrier = [](mpi::Word) { return meet_everybody(), 0; };
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

void share(int count) {
  shared = static_cast<Shared*>(
      mmap(nullptr, sizeof(Shared), PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0));
  pthread_barrierattr_t attributes;
  pthread_barrierattr_init(&attributes);
  pthread_barrierattr_setpshared(&attributes, PTHREAD_PROCESS_SHARED);
  pthread_barrier_init(&shared->everybody, &attributes, static_cast<unsigned>(count));
  pthread_barrierattr_destroy(&attributes);
}

}  // namespace

std::vector<int> run_forked(int count, const std::function<int()>& live) {
  share(count);
  ranks = count;
  std::vector<pid_t> children;
  for (my_rank = 0; my_rank < count; ++my_rank) {
    const pid_t child = fork();
    if (child == 0) {
      alarm(patience_s);
      shared->process[static_cast<std::size_t>(my_rank)] = getpid();
      mpi::exchange_library(forked_mpi());
      _exit(live());
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

int forked_rank() { return my_rank; }
int forked_ranks() { return ranks; }
pid_t process_of(int rank) { return shared->process[static_cast<std::size_t>(rank)]; }

void meet(int count) {
  ++shared->met;
  while (shared->met < count) usleep(1000);
}

}  // namespace ropewalk::test
