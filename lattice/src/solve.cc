// Red-black and mixed-precision solutions around the iteration of conjugate_gradient.cc.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <complex>
#include <string>

#include "algebra.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/lattice/clover.hpp"
#include "ropewalk/lattice/conjugate_gradient.hpp"
#include "solver_checks.hpp"

namespace ropewalk::lattice {
namespace {

// Of all ranks.
template <class Real>
double norm(detail::Algebra<Real>& algebra, const SpinorField<Real>& v) {
  double out = algebra.norm2(v);
  v.layout().lattice().sum(&out, 1);
  return std::sqrt(out);
}

// r = b - M x; returns |r|.
template <class Operator, class Real>
double residual(Operator& m, detail::Algebra<Real>& algebra, SpinorField<Real>& r,
                const SpinorField<Real>& x, const SpinorField<Real>& b) {
  m.apply(r, x);
  double out = algebra.residual(r, b);
  r.layout().lattice().sum(&out, 1);
  return std::sqrt(out);
}

// The inverse of M_ee or M_oo, in place.
template <class Real>
void divide(WilsonOperator<Real>& m, SpinorField<Real>& v) {
  detail::Algebra<Real>(v.layout(), m.options().threads).multiply(v, 1 / m.diagonal());
}
template <class Operator, class Real>
void divide(Operator& m, SpinorField<Real>& v) {
  m.diagonal_inverse(v, v);
}

// The even sites of a field come first, the odd ones after them.
template <class Real>
SpinorField<Real> half(const SpinorField<Real>& whole, Sites sites) {
  SpinorField<Real> out(whole.layout(), sites);
  std::copy_n(whole.at(whole.layout().first(sites)), out.size(), out.data());
  return out;
}
template <class Real>
void put_half(SpinorField<Real>& whole, const SpinorField<Real>& part) {
  std::copy_n(part.data(), part.size(), whole.at(whole.layout().first(part.sites())));
}

// Of an operator's solution.
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

// M_oe M_ee^-1 b_e is moved to the right, and the even sites follow from the odd ones.
template <class Operator, class Real>
Solution solve_red_black(Operator& m, SpinorField<Real>& x, const SpinorField<Real>& b,
                         double b_norm, SolverOptions options) {
  SpinorField<Real> even = half(b, Sites::even);
  SpinorField<Real> odd = half(b, Sites::odd);
  divide(m, even);
  m.hop_add(odd, 1, odd, -1, even);
  SpinorField<Real> x_odd = half(x, Sites::odd);
  options.relative_to = b_norm;
  Solution out = conjugate_gradient<Real>([&m](SpinorField<Real>& to, const SpinorField<Real>& from,
                                               bool dagger) { m.apply_schur(to, from, dagger); },
                                          x_odd, odd, options);
  SpinorField<Real> rest = half(b, Sites::even);
  m.hop_add(rest, 1, rest, -1, x_odd);
  divide(m, rest);
  put_half(x, rest);
  put_half(x, x_odd);
  return out;
}

// The two operators of a solution in mixed precision.
void check_pair(const Layout& m, const Layout& single) {
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

// Between fields whose vectors have different numbers of lanes.
template <class To, class From>
void convert(SpinorField<To>& to, const SpinorField<From>& from) {
  std::vector<std::complex<double>> plain(from.size() / 2);
  from.export_to(plain.data());
  to.import_from(plain.data());
}

}  // namespace

template <class Operator, class Real>
Solution solve(Operator& m, SpinorField<Real>& x, const SpinorField<Real>& b,
               const SolverOptions& given) {
  const auto begin = std::chrono::steady_clock::now();
  detail::check_solver(m.lattice(), given, [&] { check_fields(m.layout(), x, b); });
  SolverOptions options = given;
  if (options.threads == 0) options.threads = m.options().threads;
  Solution out;
  detail::Algebra<Real> algebra(m.layout(), m.options().threads);
  const double b_norm = options.relative_to > 0 ? options.relative_to : norm(algebra, b);
  if (options.red_black && b_norm > 0) {
    check_halves(x);
    out = solve_red_black(m, x, b, b_norm, options);
    SpinorField<Real> r = m.field();
    out.residual = residual(m, algebra, r, x, b) / b_norm;
  } else {
    out = conjugate_gradient<Real>([&m](SpinorField<Real>& to, const SpinorField<Real>& from,
                                        bool dagger) { m.apply(to, from, dagger); },
                                   x, b, options);
  }
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
  return out;
}

template <class Double, class Single>
Solution solve_mixed(Double& m, Single& m_single, SpinorField<double>& x,
                     const SpinorField<double>& b, const SolverOptions& options) {
  constexpr double inner_tolerance = 1e-5;  // what single precision gives without effort
  const auto begin = std::chrono::steady_clock::now();
  detail::check_solver(m.lattice(), options, [&] {
    check_fields(m.layout(), x, b);
    check_pair(m.layout(), m_single.layout());
  });
  Solution out;
  detail::Algebra<double> algebra(m.layout(), m.options().threads);
  const double b_norm = norm(algebra, b);
  if (b_norm == 0) {
    std::fill_n(x.data(), x.size(), 0.0);
    return out;
  }
  SpinorField<double> r = m.field();
  SpinorField<float> r_single = m_single.field();
  SpinorField<double> correction = m.field();
  double r_norm = residual(m, algebra, r, x, b);
  check_finite(r_norm);
  while (r_norm > options.tolerance * b_norm) {
    SolverOptions inner = options;
    inner.tolerance = std::clamp(0.5 * options.tolerance * b_norm / r_norm, inner_tolerance, 0.5);
    inner.max_iterations = std::max(1, options.max_iterations - out.iterations);
    // To size 1: small residuals leave the range of single precision.
    algebra.multiply(r, 1 / r_norm);
    convert(r_single, r);
    SpinorField<float> d = m_single.field();
    const Solution part = solve(m_single, d, r_single, inner);
    out.iterations += part.iterations;
    for (const double value : part.history) out.history.push_back(value * r_norm / b_norm);
    convert(correction, d);
    algebra.add_scaled(x, r_norm, correction);
    const double before = r_norm;
    r_norm = residual(m, algebra, r, x, b);
    if (!(r_norm < before / 2)) {
      throw Error(ErrorCode::argument, "tolerance: double precision ends at |b - M x|/|b| = " +
                                           std::to_string(r_norm / b_norm) +
                                           "; raise the tolerance, or take a heavier quark");
    }
  }
  out.residual = r_norm / b_norm;
  out.seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - begin).count();
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
