#include "support/counted_allocations.hpp"

#include <atomic>
#include <cstdlib>
#include <new>

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

}  // namespace

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

void begin_counting() noexcept {
  counted = 0;
  counting = true;
}

int end_counting() noexcept {
  counting = false;
  return counted;
}

}  // namespace ropewalk::test
