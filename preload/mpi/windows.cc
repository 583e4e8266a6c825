#include "windows.hpp"

#include "functions.hpp"
#include "mpi/mpi.hpp"

namespace ropewalk::preload {

bool windows_made = false;

void progress_windows() noexcept {
  try {
    mpi::iprobe(mpi::any_source(), mpi::any_tag(), mpi::comm_self());
  } catch (...) {  // the program's own calls tell of errors that matter to it
  }
}

namespace serve {

int Win_create(void* base, Count bytes, int unit, Word info, Word comm, void* window) {
  windows_made = true;
  return next.Win_create(base, bytes, unit, info, comm, window);
}
int Win_allocate(Count bytes, int unit, Word info, Word comm, void* base, void* window) {
  windows_made = true;
  return next.Win_allocate(bytes, unit, info, comm, base, window);
}
int Win_allocate_shared(Count bytes, int unit, Word info, Word comm, void* base, void* window) {
  windows_made = true;
  return next.Win_allocate_shared(bytes, unit, info, comm, base, window);
}
int Win_create_dynamic(Word info, Word comm, void* window) {
  windows_made = true;
  return next.Win_create_dynamic(info, comm, window);
}

}  // namespace serve
}  // namespace ropewalk::preload
