// The site-local kernels with AVX2 (x86-64-v3). Everything lives in a namespace of its own: no
// inline function may leave this file, since another machine could not run it.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/kernels.hpp"
#include "kernels/local_instances.hpp"

namespace ropewalk::lattice::kernels::local_avx2 {

namespace of_double {
namespace {

using Real = double;
constexpr int lanes = 32 / sizeof(Real);

// clang-format off
#include "kernels/vectors.inc"
#include "kernels/local.inc"
// clang-format on

}  // namespace
}  // namespace of_double

const LocalTable<double> double_table = ROPEWALK_LATTICE_LOCAL_TABLE(of_double);

namespace of_float {
namespace {

using Real = float;
constexpr int lanes = 32 / sizeof(Real);

// clang-format off
#include "kernels/vectors.inc"
#include "kernels/local.inc"
// clang-format on

}  // namespace
}  // namespace of_float

const LocalTable<float> float_table = ROPEWALK_LATTICE_LOCAL_TABLE(of_float);

}  // namespace ropewalk::lattice::kernels::local_avx2
