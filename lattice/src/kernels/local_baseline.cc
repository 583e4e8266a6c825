// The site-local kernels with the instruction set that is always there. Everything lives in a
// namespace of its own: no inline function may leave this file, another machine could not run it.
#if defined(__x86_64__)
#include <immintrin.h>
#endif

#include "kernels/kernels.hpp"
#include "kernels/local_instances.hpp"

namespace ropewalk::lattice::kernels::local_baseline {

namespace of_double {
namespace {

using Real = double;
constexpr int lanes = 16 / sizeof(Real);

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
constexpr int lanes = 16 / sizeof(Real);

// clang-format off
#include "kernels/vectors.inc"
#include "kernels/local.inc"
// clang-format on

}  // namespace
}  // namespace of_float

const LocalTable<float> float_table = ROPEWALK_LATTICE_LOCAL_TABLE(of_float);

namespace scalar_double {
namespace {

using Real = double;
constexpr int lanes = 1;

// clang-format off
#include "kernels/vectors.inc"
#include "kernels/local.inc"
// clang-format on

}  // namespace
}  // namespace scalar_double

const LocalTable<double> scalar_double_table = ROPEWALK_LATTICE_LOCAL_TABLE(scalar_double);

namespace scalar_float {
namespace {

using Real = float;
constexpr int lanes = 1;

// clang-format off
#include "kernels/vectors.inc"
#include "kernels/local.inc"
// clang-format on

}  // namespace
}  // namespace scalar_float

const LocalTable<float> scalar_float_table = ROPEWALK_LATTICE_LOCAL_TABLE(scalar_float);

}  // namespace ropewalk::lattice::kernels::local_baseline
