// The kernels in float precision with one number a vector, for lattices that cannot be cut.
// Everything lives in a namespace of its own: no inline function may leave this file, since another
// machine could not run it.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#define ROPEWALK_LATTICE_SCALAR

#include "kernels/instances.hpp"

namespace ropewalk::lattice::kernels::scalar {

namespace {

using Real = float;
constexpr int lanes = 1;

// clang-format off
#include "kernels/vectors.inc"
#include "kernels/half.inc"
#include "kernels/hop.inc"
#include "kernels/fifth.inc"
// clang-format on

}  // namespace

const OperatorTable<Real> float_table = ROPEWALK_LATTICE_TABLE("scalar");

}  // namespace ropewalk::lattice::kernels::scalar
