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

const LocalTable<double> double_table = {of_double::lanes,    of_double::clover,
                                         of_double::step,     of_double::direction,
                                         of_double::residual, of_double::norm2};

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

const LocalTable<float> float_table = {of_float::lanes,     of_float::clover,   of_float::step,
                                       of_float::direction, of_float::residual, of_float::norm2};

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

const LocalTable<double> scalar_double_table = {scalar_double::lanes,    scalar_double::clover,
                                                scalar_double::step,     scalar_double::direction,
                                                scalar_double::residual, scalar_double::norm2};

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

const LocalTable<float> scalar_float_table = {scalar_float::lanes,    scalar_float::clover,
                                              scalar_float::step,     scalar_float::direction,
                                              scalar_float::residual, scalar_float::norm2};

}  // namespace ropewalk::lattice::kernels::local_baseline
