// An exchange allocates nothing: every operator new of this program is counted, but for those that
// the MPI of threads makes for itself.
#include <gtest/gtest.h>

#include <atomic>
#include <cstdlib>
#include <new>
#include <vector>

#include "halo/random_case.hpp"
#include "mpi/library.hpp"
#include "ropewalk/halo.hpp"
#include "ropewalk/memory.hpp"
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

void count_exchanges(int rank, Halo& halo, const char* what) {
  halo.exchange();
  at_rank_zero(rank, [] {
    counted = 0;
    counting = true;
  });
  for (int i = 0; i < 3; ++i) halo.exchange();
  halo.start();
  for (int i = 0; i < 5; ++i) halo.test();
  halo.wait();
  at_rank_zero(rank, [&] {
    counting = false;
    EXPECT_EQ(counted.load(), 0) << what;
  });
}

TEST(Allocation, TheCountingCounts) {
  counted = 0;
  counting = true;
  ::operator delete(::operator new(1));  // a new-expression the compiler may leave out
  counting = false;
  EXPECT_EQ(counted.load(), 1);
}

TEST(Allocation, ExchangesMakeNone) {
  const mpi::Library* plain = nullptr;
  run_ranks(4, [&](int rank) {
    at_rank_zero(rank, [&] {
      plain = &mpi::library();
      mpi::exchange_library(marked_library(*plain));
    });
    {
      const CartesianGrid grid(Communicator::world(), {2, 2, 1}, {true, false, true});
      EndpointSet endpoints(Communicator::world(), {.lanes = 2, .threads = true, .pin = false});
      std::vector<double, Allocator<double>> array(6 * 7 * 8);
      const std::vector<Field> fields{{array.data(), 8, {4, 5, 6}, {1, 1, 1}}};
      std::vector<std::byte, Allocator<std::byte>> packet(4096);
      std::vector<std::byte, Allocator<std::byte>> received(6 * 4096);
      FacePackets faces;
      for (std::size_t i = 0; i < 6; ++i) {
        faces.send.push_back(packet.data());
        faces.receive.push_back(received.data() + i * 4096);
        faces.bytes.push_back(4096);
      }
      for (Strategy strategy :
           {Strategy::sequential, Strategy::concurrent, Strategy::threaded, Strategy::direct}) {
        Halo in_place(grid, endpoints, faces, {strategy, Corners::no});
        count_exchanges(rank, in_place, name(strategy));
        Halo packed(grid, endpoints, fields, {strategy, Corners::yes});
        count_exchanges(rank, packed, name(strategy));
      }
    }
    at_rank_zero(rank, [&] { mpi::exchange_library(plain); });
  });
}

}  // namespace
}  // namespace ropewalk::test
