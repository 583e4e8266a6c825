// Shared by the tests of the malloc library.
#pragma once

#include <gtest/gtest.h>
#include <sys/stat.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <fstream>
#include <memory>
#include <string>

#include "memory/pattern.hpp"
#include "os/mapping.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::test {

constexpr std::size_t threshold = 128 * os::kib;

struct Free {
  void operator()(void* block) const { std::free(block); }
};
using Block = std::unique_ptr<void, Free>;

inline Block block_of(std::size_t bytes) { return Block(std::malloc(bytes)); }

// By the kernel's word, not ours: the address lies in a mapping of the arena's file.
inline bool is_in_arena(const void* block) {
  const auto at = reinterpret_cast<std::uintptr_t>(block);
  std::ifstream maps("/proc/self/maps");
  for (std::string line; std::getline(maps, line);) {
    std::size_t dash = 0;
    const std::uintptr_t begin = std::stoull(line, &dash, 16);
    const std::uintptr_t end = std::stoull(line.substr(dash + 1), nullptr, 16);
    if (at >= begin && at < end) return line.find("/memfd:ropewalk") != std::string::npos;
  }
  return false;
}

// Returns memory that the arena's file really takes.
inline std::size_t arena_resident_bytes() {
  struct stat state {};
  if (fstat(Arena::process().descriptor(), &state) != 0) return 0;
  return static_cast<std::size_t>(state.st_blocks) * 512;
}

inline bool is_zero(const void* block, std::size_t bytes) {
  const auto* at = static_cast<const unsigned char*>(block);
  for (std::size_t i = 0; i < bytes; ++i) {
    if (at[i] != 0) return false;
  }
  return true;
}

}  // namespace ropewalk::test
