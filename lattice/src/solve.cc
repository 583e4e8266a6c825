// This file builds red-black and mixed-precision solutions around the iteration of
// conjugate_gradient.cc.
#include <algorithm>
#include <cmath>
#include <complex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "agree.hpp"
#include "algebra.hpp"
#include "halves.hpp"
#include "in_range.hpp"
#include "iterations.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/lattice/clover.hpp"
#include "ropewalk/lattice/conjugate_gradient.hpp"
#include "solver_checks.hpp"
#include "solver_timer.hpp"

namespace ropewalk::lattice {

using detail::half;
using detail::put_half;

namespace {

// r = b - M x; returns |r|.
template <class Operator, class Real>
double residual(Operator& m, detail::Algebra<Real>& algebra, SpinorField<Real>& r,
                const SpinorField<Real>& x, const SpinorField<Real>& b) {
  m.apply(r, x);
  double out = algebra.residual(r, b);
  r.layout().lattice().sum(&out, 1);
  return std::sqrt(out);
}

// Applies the inverse of M_ee or M_oo, in place.
template <class Real>
void divide(WilsonOperator<Real>& m, SpinorField<Real>& v) {
  detail::Algebra<Real>(v.layout(), m.options().threads).multiply(v, 1 / m.diagonal());
}
template <class Operator, class Real>
void divide(Operator& m, SpinorField<Real>& v) {
  m.diagonal_inverse(v, v);
}

// Checks the fields of a solution with an operator.
template <class Real>
void check_fields(const Layout& layout, const SpinorField<Real>& x, const SpinorField<Real>& b) {
  detail::check_alike(x, b);
  if (!(b.layout() == layout)) {
    throw Error(ErrorCode::argument,
                "x, b: fields of another layout than the operator's; make them with field()");
  }
  if (b.sites() == Sites::all) return;
  throw Error(ErrorCode::argument, std::string("x, b: fields on ") + name(b.sites()) +
                                       " sites, expected both on all; call conjugate_gradient with "
                                       "the operator of one parity");
}

template <class Real>
void check_halves(const SpinorField<Real>& x) {
  if (x.layout().checkered()) return;
  throw Error(ErrorCode::argument,
              "red_black: the lattice " + text(x.layout().lattice().global()) + " over " +
                  text(x.layout().lattice().rank_grid()) +
                  " has no even and odd halves; set red_black to false, or make extents even");
}

// These are the fields of a red-black solution.
template <class Real>
struct Halves {
  Halves(const SpinorField<Real>& x, const SpinorField<Real>& b)
      : even(half(b, Sites::even)),
        odd(half(b, Sites::odd)),
        x_odd(half(x, Sites::odd)),
        rest(half(b, Sites::even)) {}
  SpinorField<Real> even, odd, x_odd, rest;
};

// M_oe M_ee^-1 b_e is moved to the right, and the even sites follow from the odd ones.
template <class Operator, class Real>
Solution solve_red_black(Operator& m, SpinorField<Real>& x, const SpinorField<Real>& b,
                         const SolverOptions& options, Solution so_far) {
  Halves<Real> f = made_collectively(m.lattice(), [&] { return Halves<Real>(x, b); });
  collectively(m.lattice(), [&] { divide(m, f.even); });
  m.hop_add(f.odd, 1, f.odd, -1, f.even);
  Solution out = detail::continue_conjugate_gradient<Real>(
      [&m](SpinorField<Real>& to, const SpinorField<Real>& from, bool dagger) {
        m.apply_schur(to, from, dagger);
      },
      f.x_odd, f.odd, options, std::move(so_far));
  m.hop_add(f.rest, 1, f.rest, -1, f.x_odd);
  collectively(m.lattice(), [&] { divide(m, f.rest); });
  put_half(x, f.rest);
  put_half(x, f.x_odd);
  return out;
}

// Checks the two operators of a solution in mixed precision.
template <class Double>
void check_pair(const Double& whole, const Layout& single) {
  if (whole.options().face_precision != FacePrecision::full) {
    throw Error(ErrorCode::argument,
                "m: an operator with faces of 16 bits, expected FacePrecision::full, because the "
                "residual is computed with it; m_single may have them");
  }
  const Layout& m = whole.layout();
  const bool alike = m.lattice().global() == single.lattice().global() &&
                     m.lattice().rank_grid() == single.lattice().rank_grid() &&
                     m.fifth_extent() == single.fifth_extent();
  if (alike) return;
  throw Error(ErrorCode::argument,
              "m_single: an operator of another lattice or fifth extent than m, expected the same; "
              "make it from the same links in single precision");
}

void check_finite(double norm) {
  if (std::isfinite(norm)) return;
  throw Error(ErrorCode::argument,
              "m: |b - M x| is not finite; look for numbers that are not finite in links, source "
              "and guess");
}

// Appends the iterations of a part of the way, whose residuals are relative to `unit`.
void append(Solution& out, const Solution& part, double unit) {
  out.iterations += part.iterations;
  for (const double value : part.history) out.history.push_back(value * unit);
}

// Corrects a solution in double precision by solutions in single precision.
template <class Double, class Single>
class Refinement {
 public:
  Refinement(Double& m, Single& m_single, SpinorField<double>& x, const SpinorField<double>& b)
      : m_(m),
        m_single_(m_single),
        x_(x),
        b_(b),
        algebra_(m.layout(), m.options().threads),
        r_(m.field()),
        correction_(m.field()),
        r_single_(m_single.field()),
        d_(m_single.field()),
        plain_(r_.size() / 2) {}

  double norm_of_source() { return detail::norm(algebra_, b_); }
  // Returns |b - M x|.
  double residual() { return lattice::residual(m_, algebra_, r_, x_, b_); }

  // Adds one correction to x. residual() has been called before, and returned r_norm.
  Solution correct(double r_norm, const SolverOptions& options) {
    // The right-hand side is scaled to norm 1, since small residuals leave the range of single
    // precision.
    algebra_.multiply(r_, 1 / r_norm);
    convert(r_single_, r_);
    std::fill_n(d_.data(), d_.size(), 0.0F);
    Solution out = solve(m_single_, d_, r_single_, options);
    convert(correction_, d_);
    algebra_.add_scaled(x_, r_norm, correction_);
    return out;
  }
  // Takes back the last correction, which correct(r_norm) has made.
  void take_back(double r_norm) { algebra_.add_scaled(x_, -r_norm, correction_); }

 private:
  // Converts between fields whose vectors have different numbers of lanes.
  template <class To, class From>
  void convert(SpinorField<To>& to, const SpinorField<From>& from) {
    from.export_to(plain_.data());
    to.import_from(plain_.data());
  }

  Double& m_;
  Single& m_single_;
  SpinorField<double>& x_;
  const SpinorField<double>& b_;
  detail::Algebra<double> algebra_;
  SpinorField<double> r_;
  SpinorField<double> correction_;
  SpinorField<float> r_single_;
  SpinorField<float> d_;
  std::vector<std::complex<double>> plain_;
};

// As solve(), after what another precision has done so far.
template <class Operator, class Real>
Solution continue_solution(Operator& m, SpinorField<Real>& x, const SpinorField<Real>& b,
                           const SolverOptions& given, Solution so_far) {
  collectively(m.lattice(), [&] {
    detail::check_solver(m.lattice(), given, [&] { check_fields(m.layout(), x, b); });
  });
  SolverOptions options = given;
  if (options.threads == 0) options.threads = m.options().threads;
  const LinearOperator<Real> whole = [&m](SpinorField<Real>& to, const SpinorField<Real>& from,
                                          bool dagger) { m.apply(to, from, dagger); };
  return detail::solve_in_range<Real>(
      whole, x, b, options, [&](const SpinorField<Real>& source, const SolverOptions& with) {
        if (!with.red_black) {
          return detail::continue_conjugate_gradient(whole, x, source, with, std::move(so_far));
        }
        check_halves(x);
        Solution out = solve_red_black(m, x, source, with, std::move(so_far));
        SpinorField<Real> r = made_collectively(m.lattice(), [&] { return m.field(); });
        detail::Algebra<Real> algebra = made_collectively(
            m.lattice(), [&] { return detail::Algebra<Real>(m.layout(), with.threads); });
        out.residual = residual(m, algebra, r, x, source) / with.relative_to;
        return out;
      });
}

}  // namespace

template <class Operator, class Real>
Solution solve(Operator& m, SpinorField<Real>& x, const SpinorField<Real>& b,
               const SolverOptions& options) {
  const detail::SolverTimer timer;
  Solution out = continue_solution(m, x, b, options, {});
  out.seconds = timer.seconds();
  return out;
}

template <class Double, class Single>
Solution solve_mixed(Double& m, Single& m_single, SpinorField<double>& x,
                     const SpinorField<double>& b, const SolverOptions& options) {
  constexpr double inner_tolerance = 1e-5;  // what single precision gives without effort
  const detail::SolverTimer timer;
  Solution out;
  double b_norm = 0;
  std::optional<Refinement<Double, Single>> made;
  collectively(m.lattice(), [&] {
    detail::check_solver(m.lattice(), options, [&] {
      check_fields(m.layout(), x, b);
      check_pair(m, m_single.layout());
    });
    made.emplace(m, m_single, x, b);
    b_norm = made->norm_of_source();
    out.history.reserve(detail::history_room(options));
  });
  detail::check_source(b_norm);
  if (b_norm == 0) {
    std::fill_n(x.data(), x.size(), 0.0);
    return out;
  }
  Refinement<Double, Single>& refinement = *made;
  double r_norm = refinement.residual();
  check_finite(r_norm);
  while (r_norm > options.tolerance * b_norm) {
    out.residual = r_norm / b_norm;
    if (out.iterations >= options.max_iterations) {
      if (options.best_effort) break;
      detail::give_up(out, options, "max_iterations", detail::more_iterations);
    }
    SolverOptions inner = options;
    inner.tolerance = std::clamp(0.5 * options.tolerance * b_norm / r_norm, inner_tolerance, 0.5);
    // Where single precision gets nowhere, half of the iterations are left to double.
    inner.max_iterations = std::max(1, (options.max_iterations - out.iterations) / 2);
    inner.relative_to = 0;
    inner.best_effort = true;
    append(out, refinement.correct(r_norm, inner), r_norm / b_norm);
    const double before = r_norm;
    r_norm = refinement.residual();
    if (r_norm < before / 2) continue;
    if (!(r_norm < before)) refinement.take_back(before);
    SolverOptions rest = options;
    rest.relative_to = 0;
    out = continue_solution(m, x, b, rest, std::move(out));
    out.seconds = timer.seconds();
    return out;
  }
  out.residual = r_norm / b_norm;
  out.seconds = timer.seconds();
  return out;
}

#define ROPEWALK_LATTICE_SOLVE(Operator)                                                       \
  template Solution solve(Operator<float>&, SpinorField<float>&, const SpinorField<float>&,    \
                          const SolverOptions&);                                               \
  template Solution solve(Operator<double>&, SpinorField<double>&, const SpinorField<double>&, \
                          const SolverOptions&);                                               \
  template Solution solve_mixed(Operator<double>&, Operator<float>&, SpinorField<double>&,     \
                                const SpinorField<double>&, const SolverOptions&);
ROPEWALK_LATTICE_SOLVE(WilsonOperator)
ROPEWALK_LATTICE_SOLVE(CloverOperator)
ROPEWALK_LATTICE_SOLVE(DomainWallOperator)
#undef ROPEWALK_LATTICE_SOLVE

}  // namespace ropewalk::lattice
