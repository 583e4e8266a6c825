#include "support/counted_allocations.hpp"

#include <atomic>

#include "support/marked_functions.hpp"
#include "support/operator_new.hpp"

namespace ropewalk::test {
namespace {

std::atomic<bool> counting{false};
std::atomic<int> counted{0};

}  // namespace

void before_new(bool) {
  if (counting.load(std::memory_order_relaxed) && inside_mpi == 0) counted.fetch_add(1);
}

const mpi::Library* marked_library(const mpi::Library& of) {
  static mpi::Library library(of.abi, of.path);  // once a process: it outlives the run
  library.call = of.call;
  using F = mpi::Functions;
  mark<&F::isend, &F::irecv, &F::isend_c, &F::irecv_c, &F::test, &F::wait, &F::testall, &F::waitall,
       &F::iprobe, &F::barrier>(library.call);
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
