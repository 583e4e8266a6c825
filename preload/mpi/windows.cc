#include "windows.hpp"

#include "functions.hpp"
#include "ints.hpp"
#include "mpi/progress.hpp"
#include "onesided.hpp"

namespace ropewalk::preload {

bool windows_made = false;

void note_window() noexcept {
  windows_made = true;
  mpi::expect_one_sided();
}

void progress() noexcept {
  try {
    mpi::progress();
  } catch (...) {  // the program's own calls tell of errors that matter to it
  }
}

namespace {

// What does not fit becomes a unit that MPI refuses.
int as_unit(Count unit) { return fits_int(unit) ? static_cast<int>(unit) : -1; }

}  // namespace

namespace serve {

using onesided::WindowKind;

int Win_create(void* base, Count bytes, int unit, Word info, Word comm, void* window) {
  if (onesided::make({bytes, unit, info, comm, WindowKind::create}, base, window)) {
    return 0;
  }
  note_window();
  return next.Win_create(base, bytes, unit, info, comm, window);
}
int Win_allocate(Count bytes, int unit, Word info, Word comm, void* base, void* window) {
  if (onesided::make({bytes, unit, info, comm, WindowKind::allocate}, base, window)) {
    return 0;
  }
  note_window();
  return next.Win_allocate(bytes, unit, info, comm, base, window);
}
int Win_allocate_shared(Count bytes, int unit, Word info, Word comm, void* base, void* window) {
  if (onesided::make({bytes, unit, info, comm, WindowKind::allocate_shared}, base, window)) {
    return 0;
  }
  windows_made = true;
  return next.Win_allocate_shared(bytes, unit, info, comm, base, window);
}
// An MPI without these takes the unit as an int.
int Win_create_c(void* base, Count bytes, Count unit, Word info, Word comm, void* window) {
  if (onesided::make({bytes, unit, info, comm, WindowKind::create}, base, window)) {
    return 0;
  }
  note_window();
  if (next.Win_create_c != nullptr) return next.Win_create_c(base, bytes, unit, info, comm, window);
  return next.Win_create(base, bytes, as_unit(unit), info, comm, window);
}
int Win_allocate_c(Count bytes, Count unit, Word info, Word comm, void* base, void* window) {
  if (onesided::make({bytes, unit, info, comm, WindowKind::allocate}, base, window)) {
    return 0;
  }
  note_window();
  if (next.Win_allocate_c != nullptr) {
    return next.Win_allocate_c(bytes, unit, info, comm, base, window);
  }
  return next.Win_allocate(bytes, as_unit(unit), info, comm, base, window);
}
int Win_allocate_shared_c(Count bytes, Count unit, Word info, Word comm, void* base, void* window) {
  if (onesided::make({bytes, unit, info, comm, WindowKind::allocate_shared}, base, window)) {
    return 0;
  }
  windows_made = true;
  if (next.Win_allocate_shared_c != nullptr) {
    return next.Win_allocate_shared_c(bytes, unit, info, comm, base, window);
  }
  return next.Win_allocate_shared(bytes, as_unit(unit), info, comm, base, window);
}
int Win_create_dynamic(Word info, Word comm, void* window) {
  note_window();
  return next.Win_create_dynamic(info, comm, window);
}

}  // namespace serve
}  // namespace ropewalk::preload
