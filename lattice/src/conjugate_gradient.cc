// This file has the iteration, when it stops, and what it reports while it runs.
#include "ropewalk/lattice/conjugate_gradient.hpp"

#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <utility>

#include "agree.hpp"
#include "algebra.hpp"
#include "in_range.hpp"
#include "iterations.hpp"
#include "solver_checks.hpp"
#include "solver_timer.hpp"

namespace ropewalk::lattice {

using detail::give_up;

namespace {

// One line on a terminal, rewritten at most five times a second and wiped at the end.
class Progress {
 public:
  Progress(bool wanted, const Lattice& lattice, double tolerance)
      : on_(wanted && lattice.rank() == 0 && ::isatty(STDERR_FILENO) == 1), tolerance_(tolerance) {}
  ~Progress() {
    if (shown_) std::fprintf(stderr, "\r%*s\r", width, "");
  }
  Progress(const Progress&) = delete;
  Progress& operator=(const Progress&) = delete;

  void show(int iteration, double residual) {
    if (!on_ || since_last_.seconds() < 0.2) return;
    since_last_ = {};
    shown_ = true;
    std::fprintf(stderr, "\rconjugate gradient: iteration %d, residual %.2e, to %.0e ", iteration,
                 residual, tolerance_);
  }

 private:
  static constexpr int width = 78;
  bool on_;
  bool shown_ = false;
  double tolerance_;
  detail::SolverTimer since_last_;
};

// State of the iteration; all sums are over the ranks.
template <class Real>
class Iteration {
 public:
  Iteration(const LinearOperator<Real>& m, SpinorField<Real>& x, const SpinorField<Real>& b,
            const SolverOptions& options)
      : m_(m),
        x_(x),
        b_(b),
        r_(b.layout(), b.sites()),
        s_(b.layout(), b.sites()),
        p_(b.layout(), b.sites()),
        algebra_(b.layout(), std::max(1, options.threads)),
        unit_(options.relative_to) {}

  // Computes r = b - M x; returns |b - M x| / |b|.
  double start() {
    m_(r_, x_, false);
    return relative(sum(algebra_.residual(r_, b_)));
  }

  void first_direction() {
    m_(s_, r_, true);
    s_norm2_ = sum(algebra_.norm2(s_));
    std::copy_n(s_.data(), s_.size(), p_.data());
  }

  // Makes one step; returns |b - M x| / |b|, from the recursion.
  double step() {
    m_(s_, p_, false);  // q = M p
    const double a = s_norm2_ / sum(algebra_.norm2(s_));
    double sums[2];
    sums[0] = algebra_.subtract(r_, a, s_);
    m_(s_, r_, true);
    sums[1] = algebra_.norm2(s_);
    lattice().sum(sums, 2);
    algebra_.advance(x_, a, p_, s_, sums[1] / s_norm2_);
    s_norm2_ = sums[1];
    return relative(sums[0]);
  }

 private:
  const Lattice& lattice() const { return b_.layout().lattice(); }
  double sum(double own) const {
    lattice().sum(&own, 1);
    return own;
  }
  double relative(double norm2) const { return std::sqrt(norm2) / unit_; }

  const LinearOperator<Real>& m_;
  SpinorField<Real>& x_;
  const SpinorField<Real>& b_;
  SpinorField<Real> r_;
  SpinorField<Real> s_;  // M p, then M^+ r
  SpinorField<Real> p_;
  detail::Algebra<Real> algebra_;
  double unit_;  // of residuals
  double s_norm2_ = 0;
};

// Of iterations. Without rounding each of them lowers the residual.
constexpr int most_without_progress = 100;

// Iterates until the residual of the recursion is below the tolerance, or no iterations are left.
template <class Real>
void iterate(Iteration<Real>& iteration, const SolverOptions& options, Progress& progress,
             Solution& solution) {
  iteration.first_direction();
  double lowest = solution.residual;
  int since_lowest = 0;
  do {
    solution.residual = iteration.step();
    solution.history.push_back(solution.residual);
    progress.show(++solution.iterations, solution.residual);
    if (!std::isfinite(solution.residual)) {
      give_up(solution, options, "m",
              "look for numbers that are not finite in links, source and guess");
    }
    since_lowest = solution.residual < lowest ? 0 : since_lowest + 1;
    lowest = std::min(lowest, solution.residual);
    // But for rounding it never rises: M is singular to this precision.
    const bool is_lost = solution.residual > 2 * lowest || since_lowest == most_without_progress;
    if (options.best_effort && is_lost) return;
  } while (solution.residual > options.tolerance && solution.iterations < options.max_iterations);
}

// Begins anew from x until |b - M x| itself is small enough; `out` has what was done before.
template <class Real>
Solution iterate_anew(const LinearOperator<Real>& m, SpinorField<Real>& x,
                      const SpinorField<Real>& b, const SolverOptions& options, Solution out) {
  std::optional<Iteration<Real>> made;
  collectively(b.layout().lattice(), [&] {
    made.emplace(m, x, b, options);
    out.history.reserve(detail::history_room(options));
  });
  Iteration<Real>& iteration = *made;
  Progress progress(options.progress, b.layout().lattice(), options.tolerance);
  // The recursion drifts from b - M x by rounding: it is begun anew from x where that matters.
  out.residual = iteration.start();
  const double first = out.residual;
  while (!(out.residual <= options.tolerance)) {
    if (out.iterations >= options.max_iterations) {
      if (options.best_effort) break;
      give_up(out, options, "max_iterations", detail::more_iterations);
    }
    const double before = out.residual;
    iterate(iteration, options, progress, out);
    out.residual = iteration.start();
    if (out.residual <= options.tolerance || out.iterations >= options.max_iterations) continue;
    if (options.best_effort && out.residual <= first / 4) break;
    if (out.residual < before / 2) continue;
    if (options.best_effort) break;
    give_up(out, options, "tolerance",
            sizeof(Real) == sizeof(float)
                ? "single precision ends here: solve in double or mixed precision"
                : "double precision ends here: raise the tolerance, take a heavier quark, or, if "
                  "the operator has faces of 16 bits, correct by one with whole faces");
  }
  return out;
}

}  // namespace

template <class Real>
Solution detail::continue_conjugate_gradient(const LinearOperator<Real>& m, SpinorField<Real>& x,
                                             const SpinorField<Real>& b,
                                             const SolverOptions& options, Solution so_far) {
  const SolverTimer timer;
  collectively(b.layout().lattice(),
               [&] { check_solver(b.layout().lattice(), options, [&] { check_alike(x, b); }); });
  Solution out = solve_in_range<Real>(
      m, x, b, options, [&](const SpinorField<Real>& source, const SolverOptions& with) {
        return iterate_anew(m, x, source, with, std::move(so_far));
      });
  out.seconds = timer.seconds();
  return out;
}

template <class Real>
Solution conjugate_gradient(const LinearOperator<Real>& m, SpinorField<Real>& x,
                            const SpinorField<Real>& b, const SolverOptions& options) {
  return detail::continue_conjugate_gradient(m, x, b, options, {});
}

#define ROPEWALK_LATTICE_CONJUGATE_GRADIENT(Real)                                       \
  template Solution detail::continue_conjugate_gradient(                                \
      const LinearOperator<Real>&, SpinorField<Real>&, const SpinorField<Real>&,        \
      const SolverOptions&, Solution);                                                  \
  template Solution conjugate_gradient(const LinearOperator<Real>&, SpinorField<Real>&, \
                                       const SpinorField<Real>&, const SolverOptions&);
ROPEWALK_LATTICE_CONJUGATE_GRADIENT(float)
ROPEWALK_LATTICE_CONJUGATE_GRADIENT(double)
#undef ROPEWALK_LATTICE_CONJUGATE_GRADIENT

}  // namespace ropewalk::lattice
