// The iteration, when it begins anew and when it stops, and the clover operator's even-odd system.
#include "ropewalk/lattice/bicgstab.hpp"

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <optional>
#include <string>

#include "agree.hpp"
#include "algebra.hpp"
#include "halves.hpp"
#include "in_range.hpp"
#include "ropewalk/error.hpp"
#include "solver_checks.hpp"
#include "solver_timer.hpp"

namespace ropewalk::lattice {

using detail::half;
using detail::put_half;

namespace {

using Complex = std::complex<double>;

[[noreturn]] void refuse(const Solution& solution, const SolverOptions& options, const char* what,
                         const char* remedy) {
  detail::give_up(solution, options, what, remedy, "applications of M");
}

// State of the method, in van der Vorst's letters; all sums are over the ranks.
template <class Real>
class Stabilised {
 public:
  Stabilised(const LinearOperator<Real>& m, SpinorField<Real>& x, const SpinorField<Real>& b,
             const SolverOptions& options)
      : m_(m),
        x_(x),
        b_(b),
        r_(b.layout(), b.sites()),
        shadow_(b.layout(), b.sites()),
        p_(b.layout(), b.sites()),
        v_(b.layout(), b.sites()),
        t_(b.layout(), b.sites()),
        algebra_(b.layout(), std::max(1, options.threads)),
        unit_(options.relative_to) {}

  // Begins from x: r = b - M x, the first direction and the shadow, too. Returns |r| / |b|.
  double start() {
    m_(r_, x_, false);
    const double norm2 = sum(algebra_.residual(r_, b_));
    std::copy_n(r_.data(), r_.size(), shadow_.data());
    std::copy_n(r_.data(), r_.size(), p_.data());
    rho_ = norm2;
    return relative(norm2);
  }

  // The half of a step along p; returns |r| / |b| of the recursion.
  double along_direction() {
    m_(v_, p_, false);
    alpha_ = rho_ / dot(shadow_, v_);
    algebra_.add_complex(x_, alpha_, p_);
    algebra_.add_complex(r_, -alpha_, v_);
    return relative(sum(algebra_.norm2(r_)));
  }

  // The other half, along r as far as makes it shortest; the next direction follows.
  double stabilise() {
    m_(t_, r_, false);
    const Complex along = algebra_.dot(t_, r_);
    std::array<double, 3> sums = {along.real(), along.imag(), algebra_.norm2(t_)};
    lattice().sum(sums.data(), 3);
    const Complex omega = Complex(sums[0], sums[1]) / sums[2];
    algebra_.add_complex(x_, omega, r_);
    algebra_.add_complex(r_, -omega, t_);
    const Complex rho = algebra_.dot(shadow_, r_);
    sums = {rho.real(), rho.imag(), algebra_.norm2(r_)};
    lattice().sum(sums.data(), 3);
    const Complex next(sums[0], sums[1]);
    const Complex beta = next / rho_ * (alpha_ / omega);
    rho_ = next;
    algebra_.add_complex(p_, -omega, v_);
    algebra_.turn(p_, beta, r_);
    return relative(sums[2]);
  }

 private:
  const Lattice& lattice() const { return b_.layout().lattice(); }
  double sum(double own) const {
    lattice().sum(&own, 1);
    return own;
  }
  Complex dot(const SpinorField<Real>& a, const SpinorField<Real>& b) {
    const Complex own = algebra_.dot(a, b);
    std::array<double, 2> sums = {own.real(), own.imag()};
    lattice().sum(sums.data(), 2);
    return {sums[0], sums[1]};
  }
  double relative(double norm2) const { return std::sqrt(norm2) / unit_; }

  const LinearOperator<Real>& m_;
  SpinorField<Real>& x_;
  const SpinorField<Real>& b_;
  SpinorField<Real> r_;
  SpinorField<Real> shadow_;
  SpinorField<Real> p_;
  SpinorField<Real> v_;  // M p
  SpinorField<Real> t_;  // M r
  detail::Algebra<Real> algebra_;
  double unit_;  // of residuals
  Complex rho_;
  Complex alpha_;
};

// Iterates until the residual of the recursion is below the tolerance, or no iterations are left.
template <class Real>
void iterate(Stabilised<Real>& method, const SolverOptions& options, Solution& solution) {
  bool along = true;
  do {
    solution.residual = along ? method.along_direction() : method.stabilise();
    solution.history.push_back(solution.residual);
    ++solution.iterations;
    along = !along;
    if (std::isfinite(solution.residual)) continue;
    refuse(solution, options, "m",
           "the recursion has broken down: solve by conjugate gradient, or look for numbers that "
           "are not finite in links, source and guess");
  } while (solution.residual > options.tolerance && solution.iterations < options.max_iterations);
}

// Checks the fields of a solution with the operator.
template <class Real>
void check_whole(const Layout& layout, const SpinorField<Real>& x, const SpinorField<Real>& b) {
  detail::check_alike(x, b);
  if (b.layout() == layout && b.sites() == Sites::all && layout.checkered()) return;
  throw Error(ErrorCode::argument,
              "x, b: fields of another layout than the operator's, or not on all sites, or of a "
              "lattice without even and odd halves; make them with field(), of even extents");
}

template <class Real>
struct EvenOdd {
  EvenOdd(const SpinorField<Real>& x, const SpinorField<Real>& b)
      : even(half(b, Sites::even)), odd(half(b, Sites::odd)), x_even(half(x, Sites::even)) {}
  SpinorField<Real> even, odd, x_even;
};

// |b - M x|, from x anew.
template <class Real>
double true_residual(CloverOperator<Real>& m, const SpinorField<Real>& x,
                     const SpinorField<Real>& b) {
  SpinorField<Real> r = made_collectively(m.lattice(), [&] { return m.field(); });
  detail::Algebra<Real> algebra(m.layout(), m.options().threads);
  m.apply(r, x);
  double norm2 = algebra.residual(r, b);
  m.lattice().sum(&norm2, 1);
  return std::sqrt(norm2);
}

// Begins anew from x until |b - M x| itself is small enough.
template <class Real>
Solution iterate_anew(const LinearOperator<Real>& m, SpinorField<Real>& x,
                      const SpinorField<Real>& b, const SolverOptions& options) {
  Solution out;
  std::optional<Stabilised<Real>> made;
  collectively(b.layout().lattice(), [&] {
    made.emplace(m, x, b, options);
    out.history.reserve(detail::history_room(options));
  });
  // The recursion drifts from b - M x by rounding: it is begun anew from x where that matters.
  out.residual = made->start();
  while (!(out.residual <= options.tolerance)) {
    const double before = out.residual;
    iterate(*made, options, out);
    out.residual = made->start();
    if (out.residual <= options.tolerance) break;
    if (out.iterations >= options.max_iterations) {
      refuse(out, options, "max_iterations", detail::more_iterations);
    }
    if (!(out.residual < before / 2)) {
      refuse(out, options, "tolerance",
             "the precision ends here: raise the tolerance, or solve by conjugate gradient");
    }
  }
  return out;
}

// The source on the even sites is A^-1 (b_e - D_eo A^-1 b_o); the odd ones follow from those.
template <class Real>
Solution solve_even_odd(CloverOperator<Real>& m, SpinorField<Real>& x, const SpinorField<Real>& b,
                        const SolverOptions& options) {
  EvenOdd<Real> f = made_collectively(m.lattice(), [&] { return EvenOdd<Real>(x, b); });
  SpinorField<Real> rest = made_collectively(m.lattice(), [&] { return half(b, Sites::odd); });
  m.diagonal_inverse(f.odd, f.odd);
  m.hop_add(f.even, 1, f.even, -1, f.odd);
  m.diagonal_inverse(f.even, f.even);
  Solution out = bicgstab<Real>([&m](SpinorField<Real>& to, const SpinorField<Real>& from,
                                     bool) { m.apply_schur_by_mult(to, from); },
                                f.x_even, f.even, options);
  m.hop_add(rest, 1, rest, -1, f.x_even);
  m.diagonal_inverse(rest, rest);
  put_half(x, f.x_even);
  put_half(x, rest);
  return out;
}

}  // namespace

template <class Real>
Solution bicgstab(const LinearOperator<Real>& m, SpinorField<Real>& x, const SpinorField<Real>& b,
                  const SolverOptions& options) {
  const detail::SolverTimer timer;
  collectively(b.layout().lattice(), [&] {
    detail::check_solver(b.layout().lattice(), options, [&] { detail::check_alike(x, b); });
  });
  Solution out = detail::solve_in_range<Real>(
      m, x, b, options, [&](const SpinorField<Real>& source, const SolverOptions& with) {
        return iterate_anew(m, x, source, with);
      });
  out.seconds = timer.seconds();
  return out;
}

template <class Real>
Solution solve_bicgstab(CloverOperator<Real>& m, SpinorField<Real>& x, const SpinorField<Real>& b,
                        const SolverOptions& given) {
  const detail::SolverTimer timer;
  collectively(m.lattice(), [&] {
    detail::check_solver(m.lattice(), given, [&] { check_whole(m.layout(), x, b); });
  });
  SolverOptions options = given;
  if (options.threads == 0) options.threads = m.options().threads;
  const LinearOperator<Real> whole = [&m](SpinorField<Real>& to, const SpinorField<Real>& from,
                                          bool dagger) { m.apply(to, from, dagger); };
  const bool is_given = options.relative_to > 0;
  Solution out = detail::solve_in_range<Real>(
      whole, x, b, options, [&](const SpinorField<Real>& source, const SolverOptions& with) {
        SolverOptions of_system = with;
        if (!is_given) of_system.relative_to = 0;  // the system's own source
        Solution found = solve_even_odd(m, x, source, of_system);
        found.residual = true_residual(m, x, source) / with.relative_to;
        return found;
      });
  out.seconds = timer.seconds();
  return out;
}

#define ROPEWALK_LATTICE_BICGSTAB(Real)                                       \
  template Solution bicgstab(const LinearOperator<Real>&, SpinorField<Real>&, \
                             const SpinorField<Real>&, const SolverOptions&); \
  template Solution solve_bicgstab(CloverOperator<Real>&, SpinorField<Real>&, \
                                   const SpinorField<Real>&, const SolverOptions&);
ROPEWALK_LATTICE_BICGSTAB(float)
ROPEWALK_LATTICE_BICGSTAB(double)
#undef ROPEWALK_LATTICE_BICGSTAB

}  // namespace ropewalk::lattice
