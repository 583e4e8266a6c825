// A hint to the core that it spins.
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

}  // namespace ropewalk::os
