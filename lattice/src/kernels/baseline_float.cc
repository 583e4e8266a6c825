// The kernels in float precision with the base instruction set. Everything lives in a
// namespace of its own: no inline function may leave this file, another machine could not run it.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/instances.hpp"

namespace ropewalk::lattice::kernels::baseline {

namespace {

using Real = float;
constexpr int lanes = 16 / sizeof(Real);

// clang-format off
#include "kernels/vectors.inc"
#include "kernels/half.inc"
#include "kernels/hop.inc"
#include "kernels/fifth.inc"
// clang-format on

}  // namespace

const OperatorTable<Real> float_table = ROPEWALK_LATTICE_TABLE("baseline");

}  // namespace ropewalk::lattice::kernels::baseline
