// The kernels with AVX-512 (x86-64-v4). Everything here lives in a namespace of
// its own: no inline function may leave this file, since another machine could not run it.
#include <immintrin.h>

#include <cstddef>
#include <cstdint>

#include "kernels/table.hpp"

namespace ropewalk::kernels::avx512 {

namespace {

constexpr int vector_bytes = 64;

// The formats use the conversions, and those use the vectors, so the order matters.
// clang-format off
#include "kernels/vectors.inc"
#include "kernels/x86.inc"
#include "kernels/f16c.inc"
#include "kernels/formats.inc"
#include "kernels/operations.inc"
#include "kernels/passes.inc"
#include "kernels/table.inc"
// clang-format on

}  // namespace

const Table table = made;

}  // namespace ropewalk::kernels::avx512
