// A reduction allocates nothing: every operator new of this program is counted, but for those that
// the MPI of threads makes for itself.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "mpi/library.hpp"
#include "ropewalk/memory.hpp"
#include "ropewalk/reduction_plan.hpp"
#include "support/thread_mpi.hpp"

namespace {

std::atomic<bool> counting{false};
std::atomic<int> counted{0};
thread_local int inside_mpi = 0;

void* counted_new(std::size_t bytes) {
  if (counting.load(std::memory_order_relaxed) && inside_mpi == 0) counted.fetch_add(1);
  if (void* found = std::malloc(bytes == 0 ? 1 : bytes)) return found;
  throw std::bad_alloc();
}

void* counted_new(std::size_t bytes, std::align_val_t alignment) {
  if (counting.load(std::memory_order_relaxed) && inside_mpi == 0) counted.fetch_add(1);
  const auto unit = static_cast<std::size_t>(alignment);
  if (void* found = std::aligned_alloc(unit, (bytes + unit - 1) / unit * unit)) return found;
  throw std::bad_alloc();
}

}  // namespace

void* operator new(std::size_t bytes) { return counted_new(bytes); }
void* operator new[](std::size_t bytes) { return counted_new(bytes); }
void* operator new(std::size_t bytes, std::align_val_t a) { return counted_new(bytes, a); }
void* operator new[](std::size_t bytes, std::align_val_t a) { return counted_new(bytes, a); }
// The forms that do not throw too: under the address sanitizer they would be its own, and what they
// give would be freed by ours. std::stable_sort uses them.
void* operator new(std::size_t bytes, const std::nothrow_t&) noexcept { return counted_new(bytes); }
void* operator new[](std::size_t bytes, const std::nothrow_t&) noexcept {
  return counted_new(bytes);
}
void operator delete(void* address) noexcept { std::free(address); }
void operator delete(void* address, const std::nothrow_t&) noexcept { std::free(address); }
void operator delete[](void* address, const std::nothrow_t&) noexcept { std::free(address); }
void operator delete[](void* address) noexcept { std::free(address); }
void operator delete(void* address, std::size_t) noexcept { std::free(address); }
void operator delete[](void* address, std::size_t) noexcept { std::free(address); }
void operator delete(void* address, std::align_val_t) noexcept { std::free(address); }
void operator delete[](void* address, std::align_val_t) noexcept { std::free(address); }
void operator delete(void* address, std::size_t, std::align_val_t) noexcept { std::free(address); }
void operator delete[](void* address, std::size_t, std::align_val_t) noexcept {
  std::free(address);
}

namespace ropewalk::test {
namespace {

// A member of the table of MPI functions, replaced by one that marks its time as MPI's own.
template <auto Member>
struct Marked;

template <class... Arguments, int (*mpi::Functions::*Member)(Arguments...)>
struct Marked<Member> {
  static inline int (*original)(Arguments...) = nullptr;
  static int call(Arguments... arguments) {
    ++inside_mpi;
    const int code = original(arguments...);
    --inside_mpi;
    return code;
  }
  static void install(mpi::Functions& functions) {
    original = functions.*Member;
    if (original != nullptr) functions.*Member = &call;
  }
};

const mpi::Library* marked_library(const mpi::Library& of) {
  static mpi::Library library(of.abi, of.path);  // once a process: it outlives the run
  library.call = of.call;
  Marked<&mpi::Functions::isend>::install(library.call);
  Marked<&mpi::Functions::irecv>::install(library.call);
  Marked<&mpi::Functions::isend_c>::install(library.call);
  Marked<&mpi::Functions::irecv_c>::install(library.call);
  Marked<&mpi::Functions::test>::install(library.call);
  Marked<&mpi::Functions::wait>::install(library.call);
  Marked<&mpi::Functions::testall>::install(library.call);
  Marked<&mpi::Functions::waitall>::install(library.call);
  Marked<&mpi::Functions::iprobe>::install(library.call);
  Marked<&mpi::Functions::barrier>::install(library.call);
  return &library;
}

// In step with all ranks, so that no one allocates for other reasons while one counts.
template <class Body>
void at_rank_zero(int rank, Body&& body) {
  mpi::barrier(mpi::comm_world());
  if (rank == 0) body();
  mpi::barrier(mpi::comm_world());
}

void count_rounds(int rank, ReductionPlan& plan) {
  const auto round = [&] {
    plan.reduce();
    for (int tensor = 0; tensor < plan.tensors(); ++tensor) plan.ready(tensor);
    plan.wait();
    PendingReduction pending = plan.start();
    while (!pending.test()) {
    }
  };
  round();
  const std::uint64_t before = Arena::process().statistics().allocations;
  at_rank_zero(rank, [] {
    counted = 0;
    counting = true;
  });
  for (int i = 0; i < 3; ++i) round();
  at_rank_zero(rank, [&] {
    counting = false;
    EXPECT_EQ(counted.load(), 0);
    EXPECT_EQ(Arena::process().statistics().allocations, before);
  });
}

TEST(Allocation, ReductionsMakeNone) {
  const mpi::Library* plain = nullptr;
  run_ranks(3, [&](int rank) {
    at_rank_zero(rank, [&] {
      plain = &mpi::library();
      mpi::exchange_library(marked_library(*plain));
    });
    for (const bool thread : {true, false}) {
      std::vector<float> small(100);
      Buffer<float> large(100000);
      ReductionPlan plan(Communicator::world(),
                         {{100, ElementType::float32, nullptr, small.data()},
                          {50, ElementType::bfloat16},
                          {100000, ElementType::float32, nullptr, large.data()}},
                         {.average = true, .thread = thread});
      count_rounds(rank, plan);
    }
    at_rank_zero(rank, [&] { mpi::exchange_library(plain); });
  });
}

}  // namespace
}  // namespace ropewalk::test
