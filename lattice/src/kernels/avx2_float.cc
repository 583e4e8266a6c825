// The kernels in float precision with AVX2 (x86-64-v3). Everything lives in a namespace of its own:
// no inline function may leave this file, since another machine could not run it.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/instances.hpp"

namespace ropewalk::lattice::kernels::avx2 {

namespace {

using Real = float;
constexpr int lanes = 32 / sizeof(Real);

// clang-format off
#include "kernels/vectors.inc"
#include "kernels/half.inc"
#include "kernels/hop.inc"
#include "kernels/fifth.inc"
// clang-format on

}  // namespace

const OperatorTable<Real> float_table = ROPEWALK_LATTICE_TABLE("avx2");

}  // namespace ropewalk::lattice::kernels::avx2
