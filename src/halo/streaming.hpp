// The fence that must follow non-temporal stores, with which large faces are written fastest.
#pragma once

#if defined(__x86_64__)
#include <emmintrin.h>
#endif

namespace ropewalk::halo {

// Must be called before the release by which others learn of the faces: a release alone does not
// wait for such stores.
inline void complete_streaming_stores() noexcept {
#if defined(__x86_64__)
  _mm_sfence();
#endif
}

}  // namespace ropewalk::halo
