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

// The formats use the conversions, and those the vectors: the order matters.
// clang-format off
#if defined(__x86_64__)
#include "kernels/x86_stores.inc"
#else
constexpr bool can_stream = false;
template <class V>
inline void stream(char*, V) {}
inline void fence() {}
#endif
#include "kernels/vectors.inc"
#include "kernels/float16.inc"
#include "kernels/formats.inc"
#include "kernels/operations.inc"
#include "kernels/passes.inc"
#include "kernels/table.inc"
// clang-format on

}  // namespace

const Table table = made;

}  // namespace ropewalk::kernels::baseline
