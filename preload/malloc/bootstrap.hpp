// Memory for the dynamic linker while it looks for the next allocator, since older versions of libc
// allocate in dlsym. It is never freed.
#pragma once

#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace ropewalk::malloc_library {

inline constexpr std::size_t bootstrap_room = 16384;  // dlsym takes some hundred bytes

struct Bootstrap {
  alignas(64) unsigned char room[bootstrap_room];
  std::size_t used;
};
inline constinit Bootstrap bootstrap{};

// The length of a block lies in the 16 bytes before it.
inline void* bootstrap_allocate(std::size_t bytes, std::size_t alignment) noexcept {
  const auto base = reinterpret_cast<std::uintptr_t>(bootstrap.room);
  if (alignment < 16) alignment = 16;
  const std::uintptr_t start = (base + bootstrap.used + 16 + alignment - 1) & ~(alignment - 1);
  if (bytes > bootstrap_room || start - base > bootstrap_room - bytes) {
    errno = ENOMEM;
    return nullptr;
  }
  bootstrap.used = start - base + bytes;
  auto* block = bootstrap.room + (start - base);
  __builtin_memcpy(block - 16, &bytes, sizeof bytes);
  return block;
}

inline bool bootstrap_used() noexcept { return bootstrap.used > 0; }

inline bool in_bootstrap(const void* address) noexcept {
  return reinterpret_cast<std::uintptr_t>(address) -
             reinterpret_cast<std::uintptr_t>(bootstrap.room) <
         bootstrap_room;
}

inline std::size_t bootstrap_bytes(const void* address) noexcept {
  std::size_t bytes = 0;
  __builtin_memcpy(&bytes, static_cast<const unsigned char*>(address) - 16, sizeof bytes);
  return bytes;
}

}  // namespace ropewalk::malloc_library
