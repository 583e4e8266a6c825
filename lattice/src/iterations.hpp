// Conjugate gradient as a part of a longer way, for solutions that have begun in another precision.
#pragma once

#include "ropewalk/lattice/conjugate_gradient.hpp"

namespace ropewalk::lattice::detail {

// As conjugate_gradient(). The iterations and the history of `so_far` count among those of the
// whole, as max_iterations and its errors do.
template <class Real>
Solution continue_conjugate_gradient(const LinearOperator<Real>& m, SpinorField<Real>& x,
                                     const SpinorField<Real>& b, const SolverOptions&,
                                     Solution so_far);

}  // namespace ropewalk::lattice::detail
