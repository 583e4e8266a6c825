// This library is loaded, allocates, is unloaded, and leaves its block to the program.
#include <cstdlib>
#include <cstring>

extern "C" __attribute__((visibility("default"))) void* plugin_block(std::size_t bytes) {
  void* block = std::malloc(bytes);
  if (block != nullptr) std::memset(block, 'p', bytes);
  return block;
}
