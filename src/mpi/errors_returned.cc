#include "mpi/errors_returned.hpp"

#include <cstddef>
#include <mutex>
#include <vector>

#include "mpi/library.hpp"

namespace ropewalk::mpi {
namespace {

struct Exchanged {
  Comm comm;
  int standing;  // guards
  Word before;   // the program's handler: a reference, to be freed
};

struct Table {
  std::mutex mutex;
  std::vector<Exchanged> all;
};

// It is never destroyed: MPI may end after static objects.
Table& table() {
  static auto* const made = new Table;
  return *made;
}

Exchanged* find(std::vector<Exchanged>& all, Comm comm) noexcept {
  for (Exchanged& one : all) {
    if (one.comm == comm) return &one;
  }
  return nullptr;
}

Word handler_of(Comm comm) {
  Word handler = 0;
  check(library().call.comm_get_errhandler(comm.value, &handler), "MPI_Comm_get_errhandler");
  return handler;
}

// The handler is put back unless the program has set another one since.
void put_back(const Exchanged& one) noexcept {
  const Functions& call = library().call;
  Word now = 0;
  const bool asked = call.comm_get_errhandler(one.comm.value, &now) == 0;
  if (!asked || now == errors_return()) call.comm_set_errhandler(one.comm.value, one.before);
  if (asked) call.errhandler_free(&now);
  Word before = one.before;
  call.errhandler_free(&before);
}

}  // namespace

bool ErrorsReturned::possible() {
  const Functions& call = library().call;
  return call.comm_get_errhandler != nullptr && call.errhandler_free != nullptr;
}

ErrorsReturned::ErrorsReturned(Comm comm) : comm_(comm) {
  if (!possible()) return;
  Table& kept = table();
  const std::lock_guard lock(kept.mutex);
  if (Exchanged* one = find(kept.all, comm)) {
    ++one->standing;
  } else {
    kept.all.reserve(kept.all.size() + 1);
    kept.all.push_back({comm, 1, handler_of(comm)});
    try {
      return_errors(comm);
    } catch (...) {
      library().call.errhandler_free(&kept.all.back().before);
      kept.all.pop_back();
      throw;
    }
  }
  stands_ = true;
}

ErrorsReturned::~ErrorsReturned() {
  if (!stands_) return;
  Table& kept = table();
  const std::lock_guard lock(kept.mutex);
  Exchanged* one = find(kept.all, comm_);
  if (--one->standing > 0) return;
  put_back(*one);
  *one = kept.all.back();
  kept.all.pop_back();
}

}  // namespace ropewalk::mpi
