// The allocation functions of libc, replaced: what is large comes from the arena of this process.
#include <dlfcn.h>

#include <cstddef>

#include "ropewalk/export.hpp"

extern "C" RW_EXPORT void* malloc(std::size_t bytes) {
  using Malloc = void*(std::size_t);
  static auto* const next = reinterpret_cast<Malloc*>(dlsym(RTLD_NEXT, "malloc"));
  return next(bytes);
}
