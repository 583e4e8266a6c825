// What must follow stores around the caches, with which faces are best written.
#pragma once

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace ropewalk::halo {

// Must be called before a release that tells others of faces: a release alone does not wait for
// such stores.
inline void complete_streaming_stores() noexcept {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace ropewalk::halo
