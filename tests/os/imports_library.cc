// A library whose imports are replaced in imports_test.cc: it allocates by calls, frees through a
// pointer in data, and asks for its process by a pointer that code reads.
#include <unistd.h>

#include <cstdlib>

extern "C" {
__attribute__((visibility("default"))) void* imports_allocate(std::size_t bytes) {
  void* found = nullptr;
  return posix_memalign(&found, 64, bytes) == 0 ? found : nullptr;
}

__attribute__((visibility("default"))) void (*imports_free)(void*) = &free;

__attribute__((visibility("default"))) pid_t (*imports_asks())() { return &getppid; }
}
