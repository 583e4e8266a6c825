// The kernels for any machine: 16-byte vectors of the compiler, which are SSE2 on x86-64 and NEON
// on Arm.
#include <cstddef>
#include <cstdint>
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/table.hpp"

namespace ropewalk::kernels::baseline {

namespace {

constexpr int vector_bytes = 16;

// The formats use the conversions, and those use the vectors, so the order matters.
// clang-format off
#include "kernels/vectors.inc"
#if defined(__x86_64__)
#include "kernels/x86.inc"
#else
constexpr bool can_stream = false;
template <class V>
inline void stream(char*, V) {}
inline void fence() {}
template <int L>
inline Vector<std::uint32_t, L> widen_words(Vector<std::uint16_t, L> half) {
  return __builtin_convertvector(half, Vector<std::uint32_t, L>);
}
template <int L>
inline Vector<std::uint16_t, L> narrow_words(Vector<std::uint32_t, L> word) {
  return __builtin_convertvector(word, Vector<std::uint16_t, L>);
}
#endif
#include "kernels/float16.inc"
#include "kernels/formats.inc"
#include "kernels/operations.inc"
#include "kernels/passes.inc"
#include "kernels/table.inc"
// clang-format on

}  // namespace

const Table table = made;

}  // namespace ropewalk::kernels::baseline
