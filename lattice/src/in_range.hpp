// This file solves for sources of any size: single precision has numbers from 1e-38 to 1e38, but
// not their squares.
#pragma once

#include <algorithm>
#include <cmath>
#include <optional>
#include <string>
#include <type_traits>

#include "agree.hpp"
#include "algebra.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/lattice/conjugate_gradient.hpp"
#include "solver_checks.hpp"

namespace ropewalk::lattice::detail {

// Computes the norm over all ranks, whatever the size of the numbers.
template <class Real>
double norm(Algebra<Real>& algebra, const SpinorField<Real>& v) {
  double out = algebra.norm2_in_double(v);
  v.layout().lattice().sum(&out, 1);
  return std::sqrt(out);
}

inline void check_source(double norm) {
  if (std::isfinite(norm)) return;
  throw Error(ErrorCode::argument, "b: |b| is " + std::to_string(norm) +
                                       ", expected a finite number; look for numbers that are not "
                                       "finite in the source, or scale it");
}

// Returns the power of two that brings a norm near 1; 1 where that is not necessary. Between these
// bounds the squares of a solution's numbers stay in the range of float, as far as they matter.
template <class Real>
Real scale_of(double norm) {
  constexpr int lowest = -10, highest = 40, largest = 126;
  const int exponent = std::ilogb(norm);
  if (std::is_same_v<Real, double> || (exponent >= lowest && exponent <= highest)) return 1;
  return std::ldexp(Real{1}, std::clamp(-exponent, -largest, largest));
}

// Solves a system in units of its own, and brings x back into the caller's. A power of two changes
// no bit of a number, but where x leaves the range of Real; the residual is computed anew for that.
template <class Real, class Solve>
Solution solve_scaled(const LinearOperator<Real>& m, SpinorField<Real>& x,
                      const SpinorField<Real>& b, const SolverOptions& options, Real scale,
                      Algebra<Real>& algebra, const Solve& solve) {
  SpinorField<Real> own = made_collectively(
      b.layout().lattice(), [&] { return SpinorField<Real>(b.layout(), b.sites()); });
  std::copy_n(b.data(), b.size(), own.data());
  algebra.multiply(own, scale);
  algebra.multiply(x, scale);
  SolverOptions scaled = options;
  scaled.relative_to *= scale;
  Solution out;
  try {
    out = solve(own, scaled);
  } catch (...) {
    algebra.multiply(x, 1 / scale);
    throw;
  }
  algebra.multiply(x, 1 / scale);
  m(own, x, false);
  algebra.residual(own, b);
  const double expected = std::max(out.residual, options.tolerance);
  out.residual = norm(algebra, own) / options.relative_to;
  if (out.residual <= 2 * expected) return out;
  give_up(out, options, "x", "the solution leaves the range of single precision: scale the source");
}

// Collective. Calls solve(source, options) with b, or a copy that has been scaled, as x has then,
// and with relative_to filled in. Throws Error(argument) where |b| is not finite.
template <class Real, class Solve>
Solution solve_in_range(const LinearOperator<Real>& m, SpinorField<Real>& x,
                        const SpinorField<Real>& b, SolverOptions options, const Solve& solve) {
  std::optional<Algebra<Real>> algebra;
  double b_norm = 0;
  collectively(b.layout().lattice(), [&] {
    algebra.emplace(b.layout(), std::max(1, options.threads));
    b_norm = norm(*algebra, b);
  });
  check_source(b_norm);
  if (b_norm == 0) {
    std::fill_n(x.data(), x.size(), Real{0});
    return {};
  }
  if (!(options.relative_to > 0)) options.relative_to = b_norm;
  const Real scale = scale_of<Real>(b_norm);
  if (scale == 1) return solve(b, options);
  return solve_scaled(m, x, b, options, scale, *algebra, solve);
}

}  // namespace ropewalk::lattice::detail
