// A program with a malloc of its own, which other libraries of the process use, too.
#include <dlfcn.h>

#include <cstddef>
#include <cstdio>
#include <cstring>

namespace {

alignas(64) char memory[8 << 20];
std::size_t used = 0;

}  // namespace

extern "C" {
__attribute__((visibility("default"))) void* malloc(std::size_t bytes) {
  const std::size_t at = (used + 63) & ~std::size_t{63};
  if (bytes > sizeof memory || at > sizeof memory - bytes) return nullptr;
  used = at + bytes;
  return memory + at;
}
__attribute__((visibility("default"))) void free(void*) {}
__attribute__((visibility("default"))) void* calloc(std::size_t count, std::size_t bytes) {
  return malloc(count * bytes);  // zero, never given out twice
}
__attribute__((visibility("default"))) void* realloc(void* address, std::size_t bytes) {
  void* moved = malloc(bytes);
  if (moved != nullptr && address != nullptr) __builtin_memmove(moved, address, bytes);
  return moved;
}
}

int main() {
  const auto* block = static_cast<const char*>(malloc(1 << 20));
  if (block < memory || block >= memory + sizeof memory) return 1;
  using State = const char*();
  auto* state = reinterpret_cast<State*>(dlsym(RTLD_DEFAULT, "ropewalk_malloc_state"));
  if (state != nullptr) std::puts(state());
  return 0;
}
