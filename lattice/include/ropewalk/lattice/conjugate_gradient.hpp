// Solves M x = b by conjugate gradient on the normal equations.
//
// It uses the form of Hestenes and Stiefel (1952, section 10) that is known as CGLS. It updates
// r = b - M x itself, so the tolerance applies to the residual that users mean.
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
  // Threads that add and sum the fields; 0: those of the operator in solve(), 1 in
  // conjugate_gradient(). The results do not depend on them.
  int threads = 0;
  // Returns what has been reached, instead of throwing an error, where the precision of Real does
  // not allow the tolerance: after the first restart that finds |b - M x| at a quarter of what it
  // was, or when restarts no longer lower it. For corrections of a solution in higher precision.
  bool best_effort = false;
  bool progress = true;  // a line that rewrites itself, where rank 0's stderr is a terminal
};

struct Solution {
  int iterations = 0;
  double residual = 0;          // |b - M x| / |b|, computed anew from x by the same operator
  std::vector<double> history;  // the same from the recursion, after each iteration
  double seconds = 0;
};

// Collective. `x` holds a first guess before, and the solution afterwards. Each iteration makes two
// sums over the ranks, each a single allreduce. Throws Error(argument) on every rank when
// max_iterations are used up, when the precision of Real does not allow the tolerance, and when
// numbers are not finite. x then is what was reached; the message says how far that is and what to
// do. In single precision, sources below 1e-3 and above 1e12 are scaled, in a copy, so that squares
// stay in its range; a solution that leaves the range is an Error(argument).
template <class Operator, class Real>
Solution solve(Operator& m, SpinorField<Real>& x, const SpinorField<Real>& b,
               const SolverOptions& = {});

// Collective. Iterative refinement: it iterates in single precision and computes the residual in
// double, until that is small enough. This saves memory traffic and reaches the same tolerances.
// Where single precision no longer halves the residual, as with |x|/|b| from some 1e6 on, the
// iterations go on in double; max_iterations are those of both. m_single may have faces of 16 bits
// (FacePrecision::half); m must not.
template <class Double, class Single>
Solution solve_mixed(Double& m, Single& m_single, SpinorField<double>& x,
                     const SpinorField<double>& b, const SolverOptions& = {});

// out = M in, or its adjoint.
template <class Real>
using LinearOperator =
    std::function<void(SpinorField<Real>& out, const SpinorField<Real>& in, bool dagger)>;

// The iteration itself, for any operator; it ignores red_black.
template <class Real>
Solution conjugate_gradient(const LinearOperator<Real>& m, SpinorField<Real>& x,
                            const SpinorField<Real>& b, const SolverOptions& = {});

}  // namespace ropewalk::lattice
