// Hints to the core: that it spins, and which line it will write.
#pragma once

namespace ropewalk::os {

// Some 40 cycles on x86: leaves the core's resources to its other thread, and the line to its
// writer.
inline void relax() noexcept {
#if defined(__x86_64__)
  __builtin_ia32_pause();
#elif defined(__aarch64__)
  asm volatile("yield");
#endif
}

// Takes a line for writing, without waiting for it. The compiler's builtin gives a prefetch for
// reading where it is not told of a newer processor; this is no operation on those that lack it.
inline void prefetch_for_writing(const void* line) noexcept {
#if defined(__x86_64__)
  asm volatile("prefetchw (%0)" : : "r"(line));
#else
  __builtin_prefetch(line, 1);
#endif
}

}  // namespace ropewalk::os
