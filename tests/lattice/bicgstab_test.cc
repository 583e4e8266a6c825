// BiCGStab on the clover operator: the published run of CCS-QCD, class 1, and the reference's
// solutions.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <numbers>
#include <vector>

#include "lattice/proof_tools.hpp"
#include "lattice/proofs.hpp"
#include "lattice/scaled_sources.hpp"
#include "ropewalk/lattice/bicgstab.hpp"
#include "ropewalk/lattice/su3.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::lattice::test {
namespace {

using ropewalk::test::run_ranks;
using Complex = std::complex<double>;

// The fields of the miniapp (github.com/fiber-miniapp/ccs-qcd), which it makes of one sequence of
// random numbers over the whole lattice, so that they are the same on every grid of ranks. Its
// class 1 as published has 8.8.8.16 sites, kappa = 0.124, csw = 1, tolerance 1e-13.
constexpr Extents ccs_lattice{8, 8, 8, 16};
constexpr double kappa = 0.124;
constexpr int half_t = 8;

class CcsRandom {
 public:
  double next() {
    state_ = state_ * 48828125U & 2147483647U;
    return static_cast<double>(state_) / 2147483647;
  }

 private:
  std::uint32_t state_ = 12345;
};

std::size_t site(int x, int y, int z, int t) { return site_index(ccs_lattice, {x, y, z, t}); }

// The times, from 0, of the sites of a parity at x, y, z; in the miniapp coordinates begin at 1,
// which changes no parity.
int time_of(int parity, int x, int y, int z, int k) {
  return 2 * k + 1 - (x + y + z + 3 + parity) % 2;
}

// exp(i dt sum of coefficients times generators), generators being Gell-Mann's over sqrt(2).
Su3 ccs_link(const double* c) {
  const double s = 1 / std::sqrt(2.0), e = 1 / std::sqrt(6.0);
  const Complex i(0, 1);
  const Su3 p = {s * c[2] + e * c[7],   s * (c[0] - i * c[1]), s * (c[3] - i * c[4]),
                 s * (c[0] + i * c[1]), -s * c[2] + e * c[7],  s * (c[5] - i * c[6]),
                 s * (c[3] + i * c[4]), s * (c[5] + i * c[6]), -2 * e * c[7]};
  Su3 exponent;
  std::transform(p.begin(), p.end(), exponent.begin(),
                 [&](const Complex& element) { return 0.1 * i * element; });
  return exponential(exponent);
}

// The normal numbers of one line in t; a site takes eight of them, but only three are new to it.
void ccs_links(CcsRandom& random, Numbers& links, int parity, int mu, int x, int y, int z) {
  std::vector<double> normal(8 * half_t);
  for (double& one : normal) {
    const double angle = 2 * std::numbers::pi * random.next();
    one = std::sqrt(-2 * std::log(random.next())) * std::sin(angle);
  }
  for (int k = 0; k < half_t; ++k) {
    const Su3 link = ccs_link(&normal[static_cast<std::size_t>(3 * k)]);
    const std::size_t at = site(x, y, z, time_of(parity, x, y, z, k)) * 4;
    std::copy(link.begin(), link.end(),
              links.begin() + static_cast<std::ptrdiff_t>((at + static_cast<std::size_t>(mu)) * 9));
  }
}

// Its gamma matrices are Dirac's: gamma_t = diag(1, 1, -1, -1), gamma_k = sigma_2 x sigma_k. This
// is the same spinor in the basis of the library.
void put_in_our_basis(const Complex* dirac, Complex* to) {
  const Complex i(0, 1);
  const double s = 1 / std::sqrt(2.0);
  for (int colour = 0; colour < 3; ++colour) {
    const auto spin = [&](int n) { return dirac[3 * n + colour]; };
    to[colour] = -i * s * (spin(1) - spin(3));
    to[3 + colour] = i * s * (spin(0) - spin(2));
    to[6 + colour] = -i * s * (spin(1) + spin(3));
    to[9 + colour] = i * s * (spin(0) + spin(2));
  }
}

void ccs_source(CcsRandom& random, Numbers& source, int x, int y, int z) {
  std::vector<Complex> line(12 * half_t);
  for (Complex& one : line) {
    const double length = std::sqrt(-std::log(random.next()));
    one = std::polar(length, 2 * std::numbers::pi * random.next());
  }
  for (int k = 0; k < half_t; ++k) {
    put_in_our_basis(&line[static_cast<std::size_t>(12 * k)],
                     &source[site(x, y, z, time_of(0, x, y, z, k)) * 12]);
  }
}

template <class Visit>
void each_line(const Visit& visit) {
  for (int x = 0; x < ccs_lattice[0]; ++x) {
    for (int y = 0; y < ccs_lattice[1]; ++y) {
      for (int z = 0; z < ccs_lattice[2]; ++z) visit(x, y, z);
    }
  }
}

struct CcsFields {
  CcsFields() {
    CcsRandom random;
    for (int parity = 0; parity < 2; ++parity) {
      for (int mu = 0; mu < 4; ++mu) {
        each_line([&](int x, int y, int z) { ccs_links(random, links, parity, mu, x, y, z); });
      }
    }
    each_line([&](int x, int y, int z) { ccs_source(random, source, x, y, z); });
  }
  static constexpr std::size_t sites = std::size_t{8} * 8 * 8 * 16;
  Numbers links = Numbers(sites * 36);
  Numbers source = Numbers(sites * 12);
};

struct CcsRun {
  Solution solution;
  double log_determinant;
  double norm2;
};

CcsRun run_ccs(const Lattice& lattice) {
  static const CcsFields fields;
  GaugeField<double> gauge(lattice);
  gauge.import_from(local_part(lattice, fields.links).data());
  CloverOperator<double> op(gauge, 1 / (2 * kappa) - 4, 1);
  SpinorField<double> b = op.field(Sites::even);
  b.import_from(local_part(lattice, fields.source).data());
  SpinorField<double> x = op.field(Sites::even);
  SolverOptions options;
  options.tolerance = 1e-13;
  const Solution solution =
      bicgstab<double>([&](SpinorField<double>& to, const SpinorField<double>& from,
                           bool) { op.apply_schur_by_mult(to, from); },
                       x, b, options);
  double norm2 = 0;
  for (std::size_t n = 0; n < x.size(); ++n) norm2 += x.data()[n] * x.data()[n];
  lattice.sum(&norm2, 1);
  return {solution, op.log_determinant(), norm2};
}

// As published with the miniapp, in the output and the log of its class 1.
void expect_published(const CcsRun& run) {
  // Its clover term is ours times 2 kappa, 12 rows at each site.
  const double scale = 12.0 * CcsFields::sites * std::log(2 * kappa);
  EXPECT_NEAR(run.log_determinant + scale, -57.877906765333961, 1e-8);
  ASSERT_GT(run.solution.history.size(), 19U);
  EXPECT_NEAR(run.solution.history[0], 0.2874115952711983, 1e-12);
  EXPECT_NEAR(run.solution.history[1], 0.1385099525167503, 1e-12);
  EXPECT_NEAR(run.solution.history[6], 0.1631179197320087, 1e-11);
  EXPECT_NEAR(run.solution.history[18], 0.8338109651395966e-2, 1e-10);
  EXPECT_NEAR(run.norm2, 0.587744661711278e5, 1e-6);
}

TEST(BiCgStab, TakesThePublishedIterationsOfCcsQcd) {
  const CcsRun run = run_ccs(Lattice(ccs_lattice));
  expect_published(run);
  EXPECT_EQ(run.solution.iterations, 219);
  RecordProperty("iterations", run.solution.iterations);
}

// Sums over ranks are in another order, and rounding changes the last steps, not the solution.
TEST(BiCgStab, SolvesTheSameOnAnyGridOfRanks) {
  const Extents grid{1, 2, 1, 2};
  run_ranks(ranks_of(grid), [&](int) {
    const CcsRun run = run_ccs(Lattice(ccs_lattice, Communicator::world(), grid));
    expect_published(run);
    EXPECT_NEAR(run.solution.iterations, 219, 20);
  });
}

// The whole system, against the operator of the reference.
template <class Real>
void prove_solution(const Lattice& lattice, double tolerance) {
  const Whole whole(lattice.global(), true, 1);
  const GaugeField<Real> gauge = as<Real>(random_gauge(lattice, gauge_seed));
  CloverOperator<Real> op(gauge, Whole::mass, Whole::csw, {.antiperiodic_time = true});
  const Numbers source = local_part(lattice, whole.psi);
  SpinorField<Real> b = op.field(), x = op.field();
  b.import_from(source.data());
  SolverOptions options;
  options.tolerance = tolerance;
  const Solution solution = solve_bicgstab(op, x, b, options);
  EXPECT_LT(solution.residual, 20 * tolerance);
  Numbers found(source.size());
  x.export_to(found.data());
  const Numbers right =
      add(reference::hop(whole.field, found), 1, reference::apply_term(whole.term, found));
  const Numbers rest = add(source, -1, right);
  EXPECT_NEAR(std::sqrt(std::abs(dot(lattice, rest, rest) / dot(lattice, source, source))),
              solution.residual, tolerance);
}

TEST(BiCgStab, SolvesTheReferencesSystem) {
  const Lattice lattice(Extents{4, 4, 2, 4});
  prove_solution<double>(lattice, 1e-10);
  prove_solution<float>(lattice, 1e-5);
}

// Squares of these numbers leave the range of single precision.
TEST(BiCgStab, SourcesMayHaveAnySize) {
  const Lattice lattice(Extents{4, 4, 2, 4});
  const GaugeField<double> links = random_gauge(lattice, gauge_seed);
  CloverOperator<float> op(as<float>(links), Whole::mass, Whole::csw);
  CloverOperator<double> exact(links, Whole::mass, Whole::csw);
  const SolverOptions options{.tolerance = 1e-5};
  expect_solutions_at_any_scale(op, exact, options.tolerance,
                                [&](SpinorField<float>& x, const SpinorField<float>& b) {
                                  return solve_bicgstab(op, x, b, options);
                                });
}

TEST(BiCgStab, SaysWhyThereIsNoSolution) {
  const Lattice lattice(Extents{4, 4, 2, 4});
  CloverOperator<double> op(random_gauge(lattice, gauge_seed), Whole::mass, Whole::csw);
  SpinorField<double> b = op.field(), x = op.field();
  b.import_from(random_spinor(lattice, spinor_seed).data());
  SolverOptions options;
  options.max_iterations = 2;
  const auto message = [&](const SpinorField<double>& source) -> std::string {
    try {
      solve_bicgstab(op, x, source, options);
    } catch (const Error& error) {
      return error.what();
    }
    return "";
  };
  EXPECT_NE(message(b).find("max_iterations: |b - M x|/|b| is"), std::string::npos);
  EXPECT_NE(message(op.field(Sites::even)).find("x, b: "), std::string::npos);
  b.data()[0] = std::nan("");
  EXPECT_NE(message(b).find("not finite"), std::string::npos);
}

}  // namespace
}  // namespace ropewalk::lattice::test
