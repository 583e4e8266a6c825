// failing RANK makes calls in which the drop-in runs out of something on that rank: memory,
// mappings, files or threads. The first that it makes fails, then the second, and so on, each time
// on a new communicator with new types, until no failure is left to come. Every call must go well
// on all ranks, with right results, or be an error on all of them.
//
// What MPI itself asks for never fails: only calls whose return address lies in the drop-in.
#include <dlfcn.h>
#include <fcntl.h>
#include <link.h>
#include <pthread.h>
#include <sys/mman.h>
#include <sys/syscall.h>

#include <algorithm>
#include <cerrno>
#include <cstdarg>
#include <cstdint>
#include <functional>
#include <numeric>
#include <utility>
#include <vector>

#include "the_mpi.hpp"

namespace {

std::uintptr_t drop_in_begin = 0;
std::uintptr_t drop_in_end = 0;
thread_local int left = 0;  // calls to the one that fails; 0: none does
thread_local const char* failed = nullptr;

bool fails(const char* what, const void* caller) {
  const auto address = reinterpret_cast<std::uintptr_t>(caller);
  if (left == 0 || address < drop_in_begin || address >= drop_in_end || --left != 0) return false;
  failed = what;
  if (std::getenv("ROPEWALK_TEST_BACKTRACE") != nullptr) {  // for who looks for the place
    void* frames[24];
    backtrace_symbols_fd(frames, backtrace(frames, 24), STDERR_FILENO);
  }
  return true;
}

int note_drop_in(dl_phdr_info* info, std::size_t, void*) {
  if (std::strstr(info->dlpi_name, "libropewalk-mpi") == nullptr) return 0;
  drop_in_begin = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const auto& part = info->dlpi_phdr[i];
    if (part.p_type != PT_LOAD) continue;
    drop_in_end = info->dlpi_addr + part.p_vaddr + part.p_memsz;
  }
  return 1;
}

}  // namespace

#define FAILS(what) fails(what, __builtin_return_address(0))
extern "C" {
void* __libc_malloc(std::size_t);  // NOLINT: glibc's own name
void* __libc_calloc(std::size_t, std::size_t);
void* __libc_memalign(std::size_t, std::size_t);

#define EXPORTED __attribute__((visibility("default")))
EXPORTED void* malloc(std::size_t bytes) noexcept {
  return FAILS("malloc") ? nullptr : __libc_malloc(bytes);
}
EXPORTED void* calloc(std::size_t count, std::size_t bytes) noexcept {
  return FAILS("calloc") ? nullptr : __libc_calloc(count, bytes);
}
EXPORTED void* aligned_alloc(std::size_t alignment, std::size_t bytes) noexcept {
  return FAILS("aligned_alloc") ? nullptr : __libc_memalign(alignment, bytes);
}

EXPORTED void* mmap(void* address, std::size_t bytes, int protection, int flags, int file,
                    off_t offset) noexcept {
  if (FAILS("mmap")) {
    errno = ENOMEM;
    return MAP_FAILED;
  }
  return reinterpret_cast<void*>(
      ::syscall(SYS_mmap, address, bytes, protection, flags, file, offset));
}

EXPORTED int memfd_create(const char* name, unsigned flags) noexcept {
  if (FAILS("memfd_create")) {
    errno = EMFILE;
    return -1;
  }
  return static_cast<int>(::syscall(SYS_memfd_create, name, flags));
}

EXPORTED int open(const char* path, int flags, ...) {
  if (FAILS("open")) {
    errno = EMFILE;
    return -1;
  }
  va_list list;
  va_start(list, flags);
  const mode_t mode = (flags & (O_CREAT | O_TMPFILE)) != 0 ? va_arg(list, mode_t) : 0;
  va_end(list);
  return static_cast<int>(::syscall(SYS_openat, AT_FDCWD, path, flags, mode));
}

EXPORTED int pthread_create(pthread_t* thread, const pthread_attr_t* attributes,
                            void* (*body)(void*), void* argument) noexcept {
  using Create = int(pthread_t*, const pthread_attr_t*, void* (*)(void*), void*);
  static auto* const original = reinterpret_cast<Create*>(dlsym(RTLD_NEXT, "pthread_create"));
  return FAILS("pthread_create") ? EAGAIN : original(thread, attributes, body, argument);
}
}  // extern "C"

namespace {

using namespace test;

constexpr int few = 100;       // doubles: through the slots
constexpr int many = 200'000;  // doubles: from buffer to buffer
constexpr int most_calls = 20'000;

int rank = 0;
int size = 0;

// A call on a communicator: its error code, and whether its result is right where there is none.
struct Outcome {
  int code;
  bool right;
};

Outcome sum(MPI_Comm comm, int count, MPI_Datatype type, int doubles) {
  std::vector<double> in(static_cast<std::size_t>(doubles), rank + 1), out(in.size(), -1);
  const int code = MPI_Allreduce(in.data(), out.data(), count, type, MPI_SUM, comm);
  const double expected = size * (size + 1) / 2.0;
  return {code, std::all_of(out.begin(), out.end(), [&](double x) { return x == expected; })};
}

Outcome spread(MPI_Comm comm, int count, MPI_Datatype type, int doubles) {
  std::vector<double> data(static_cast<std::size_t>(doubles));
  if (rank == 0) std::iota(data.begin(), data.end(), 0.5);
  const int code = MPI_Bcast(data.data(), count, type, 0, comm);
  bool right = true;
  for (int i = 0; i < doubles; ++i) right = right && data[static_cast<std::size_t>(i)] == i + 0.5;
  return {code, right};
}

Outcome swap(MPI_Comm comm, int each) {
  const auto all = static_cast<std::size_t>(each * size);
  std::vector<double> in(all, rank), out(all, -1);
  const int code = MPI_Alltoall(in.data(), each, MPI_DOUBLE, out.data(), each, MPI_DOUBLE, comm);
  bool right = true;
  for (std::size_t i = 0; i < all; ++i) right = right && out[i] == static_cast<int>(i) / each;
  return {code, right};
}

void add(void* in, void* inout, int* count, MPI_Datatype*) {
  for (int i = 0; i < *count; ++i) static_cast<double*>(inout)[i] += static_cast<double*>(in)[i];
}

Outcome sum_by_user(MPI_Comm comm, MPI_Op op) {
  std::vector<double> in(few, rank + 1), out(few, -1);
  const int code = MPI_Allreduce(in.data(), out.data(), few, MPI_DOUBLE, op, comm);
  const double expected = size * (size + 1) / 2.0;
  return {code, std::all_of(out.begin(), out.end(), [&](double x) { return x == expected; })};
}

// Until one is an error; what is told of it, or an empty text.
std::string call_all(MPI_Comm comm, MPI_Datatype pairs, MPI_Op op) {
  const std::vector<std::function<Outcome()>> calls{
      [&] {
        return Outcome{MPI_Barrier(comm), true};
      },
      [&] { return sum(comm, few, MPI_DOUBLE, few); },
      [&] { return sum(comm, few, MPI_DOUBLE, few); },
      [&] { return sum(comm, many, MPI_DOUBLE, many); },
      [&] { return spread(comm, few, pairs, 2 * few); },
      [&] { return spread(comm, many, MPI_DOUBLE, many); },
      [&] { return swap(comm, few); },
      [&] { return swap(comm, many); },
      [&] { return sum_by_user(comm, op); },
  };
  for (std::size_t i = 0; i < calls.size(); ++i) {
    const Outcome outcome = calls[i]();
    const int mine[2] = {outcome.code == MPI_SUCCESS ? 0 : 1, outcome.right ? 0 : 1};
    const int held = std::exchange(left, 0);
    int any[2], all[2];
    PMPI_Allreduce(mine, any, 2, MPI_INT, MPI_MAX, MPI_COMM_WORLD);
    PMPI_Allreduce(mine, all, 2, MPI_INT, MPI_MIN, MPI_COMM_WORLD);
    left = held;
    const std::string call = "call " + std::to_string(i);
    if (any[0] != all[0]) return call + " is an error on some ranks only";
    if (any[0] == 0 && any[1] != 0) return call + " has a wrong result";
    if (any[0] != 0) break;
  }
  return {};
}

// With the n-th request failing on this rank, if it is `broken`; false when there are fewer.
bool attempt(int number, int broken) {
  now("attempt " + std::to_string(number));
  MPI_Comm comm;
  PMPI_Comm_dup(MPI_COMM_WORLD, &comm);
  PMPI_Comm_set_errhandler(comm, MPI_ERRORS_RETURN);
  MPI_Datatype pairs;
  PMPI_Type_contiguous(2, MPI_DOUBLE, &pairs);
  PMPI_Type_commit(&pairs);
  MPI_Op op;
  PMPI_Op_create(&add, 1, &op);
  failed = nullptr;
  left = rank == broken ? number : 0;
  const std::string wrong = call_all(comm, pairs, op);
  left = 0;
  expect(wrong.empty(), "request " + std::to_string(number) + " (" +
                            (failed == nullptr ? "not here" : failed) + "): " + wrong);
  int more = failed != nullptr ? 1 : 0;
  PMPI_Bcast(&more, 1, MPI_INT, broken, MPI_COMM_WORLD);
  MPI_Op_free(&op);
  MPI_Type_free(&pairs);
  MPI_Comm_free(&comm);
  return more != 0 && failures == 0;
}

}  // namespace

int main(int argc, char** argv) {
  MPI_Init(&argc, &argv);
  end_after(200);
  rank = rank_of(MPI_COMM_WORLD);
  size = size_of(MPI_COMM_WORLD);
  dl_iterate_phdr(&note_drop_in, nullptr);
  const int broken = argc > 1 ? std::atoi(argv[1]) : 0;
  // What a process makes once is there before. Where that cannot be made, the rank stands aside,
  // and no other hears of it.
  attempt(0, broken);
  int made = 0;
  for (int number = 1; number < most_calls && attempt(number, broken); ++number) ++made;
  // Without the drop-in there is nothing that could fail.
  if (rank == broken) expect(drop_in_end == 0 || made > 10, "too few requests failed");
  if (rank == broken) std::printf("failing: %d requests have failed on rank %d\n", made, broken);
  const int result = status();
  MPI_Finalize();
  return result;
}
