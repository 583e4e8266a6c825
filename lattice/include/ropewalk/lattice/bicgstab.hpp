// Solves M x = b by stabilised bi-conjugate gradients (BiCGStab; van der Vorst, SIAM J. Sci. Stat.
// Comput. 13 (1992) 631): without the adjoint, on M itself rather than its normal equations.
#pragma once

#include "ropewalk/lattice/clover.hpp"
#include "ropewalk/lattice/conjugate_gradient.hpp"

namespace ropewalk::lattice {

// Collective. `x` holds a first guess before, and the solution afterwards. An iteration is one
// application of M, as CCS-QCD counts them: two make a step of the method, and the residual is
// looked at after each. The adjoint is never asked for; red_black, best_effort and progress are
// ignored. Throws Error(argument) on every rank when max_iterations are used up, when the recursion
// breaks down, and when the precision of Real does not allow the tolerance.
template <class Real>
Solution bicgstab(const LinearOperator<Real>& m, SpinorField<Real>& x, const SpinorField<Real>& b,
                  const SolverOptions& = {});

// The clover operator, on all sites: its Schur complement times A^-1 on the even ones, as CCS-QCD
// solves it, then the odd ones. The tolerance is of that system's residual; Solution::residual is
// |b - M x| / |b|.
template <class Real>
Solution solve_bicgstab(CloverOperator<Real>& m, SpinorField<Real>& x, const SpinorField<Real>& b,
                        const SolverOptions& = {});

}  // namespace ropewalk::lattice
