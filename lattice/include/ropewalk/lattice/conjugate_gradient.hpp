// M x = b by conjugate gradient on the normal equations.
//
// The form that Hestenes and Stiefel (1952, section 10) give for them, known as CGLS: it carries
// r = b - M x itself along, so what is compared to the tolerance is the residual that users mean.
#pragma once

#include <functional>
#include <vector>

#include "ropewalk/lattice/operators.hpp"

namespace ropewalk::lattice {

struct SolverOptions {
  double tolerance = 1e-8;    // of |b - M x| / |b|
  double relative_to = 0;     // what |b - M x| is divided by; 0: |b|
  int max_iterations = 5000;  // two applications of M each
  // Solves Schur's complement on the odd sites, then the even ones: half the work an iteration, and
  // about half the iterations. Needs a lattice that has halves, and x and b on all sites.
  bool red_black = true;
  // That add and sum the fields; 0: those of the operator in solve(), 1 in conjugate_gradient().
  // Results do not depend on them.
  int threads = 0;
  // Comes back with what there is, instead of an error, where the precision of Real does not allow
  // the tolerance: after the first restart that finds |b - M x| a quarter of what it was, or when
  // none gets it any lower. For corrections of a solution in higher precision.
  bool best_effort = false;
  bool progress = true;  // a line that rewrites itself, where rank 0's stderr is a terminal
};

struct Solution {
  int iterations = 0;
  double residual = 0;          // |b - M x| / |b|, computed anew from x
  std::vector<double> history;  // the same from the recursion, after each iteration
  double seconds = 0;
};

// Collective. `x` holds a first guess, and the solution afterwards. Two sums over the ranks an
// iteration, each a single allreduce. Error(argument) on every rank, x as far as it came: where
// max_iterations are used up, where the precision of Real does not allow the tolerance, where
// numbers are not finite; the message says how far it came and what to do.
template <class Operator, class Real>
Solution solve(Operator& m, SpinorField<Real>& x, const SpinorField<Real>& b,
               const SolverOptions& = {});

// Collective. The iterations in single precision, the residual in double, until that is small
// enough (iterative refinement): less memory traffic, the same tolerances. Where single precision
// no longer halves the residual, as with |x|/|b| from some 1e6 on, the iterations go on in double.
template <class Double, class Single>
Solution solve_mixed(Double& m, Single& m_single, SpinorField<double>& x,
                     const SpinorField<double>& b, const SolverOptions& = {});

// out = M in, or its adjoint.
template <class Real>
using LinearOperator =
    std::function<void(SpinorField<Real>& out, const SpinorField<Real>& in, bool dagger)>;

// The iteration itself, for any operator; red_black is the caller's matter.
template <class Real>
Solution conjugate_gradient(const LinearOperator<Real>& m, SpinorField<Real>& x,
                            const SpinorField<Real>& b, const SolverOptions& = {});

}  // namespace ropewalk::lattice
