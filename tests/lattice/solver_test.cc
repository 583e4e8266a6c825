// Tests conjugate gradient: solutions by the reference's operators, and what it says when there are
// none.
#include <gtest/gtest.h>

#include <cmath>
#include <complex>
#include <limits>
#include <string>
#include <vector>

#include "lattice/proofs.hpp"
#include "lattice/scaled_sources.hpp"
#include "ropewalk/lattice/conjugate_gradient.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::lattice::test {
namespace {

using ropewalk::test::run_ranks;

constexpr Extents global{4, 4, 2, 4};

const Whole& whole() {
  static const Whole made(global, true, 4);
  return made;
}

How antiperiodic() {
  How out;
  out.options.antiperiodic_time = true;
  out.options.strategy = Strategy::concurrent;
  return out;
}

TEST(Solver, SolvesTheReferencesSystems) {
  prove_solutions(whole(), Lattice(global), antiperiodic());
  const Extents grid{1, 2, 1, 2};
  run_ranks(ranks_of(grid), [&](int) {
    prove_solutions(whole(), Lattice(global, Communicator::world(), grid), antiperiodic());
  });
}

// What solve() throws, with these words.
template <class Real>
void expect_error(const std::vector<std::string>& words, const SolverOptions& options,
                  const std::complex<double>& source = 1.0) {
  const Lattice lattice(global);
  GaugeField<Real> gauge(lattice);
  const GaugeField<double> links = random_gauge(lattice, 51);
  gauge.import_from(links.data());
  WilsonOperator<Real> op(gauge, 0.1);
  SpinorField<Real> x = op.field();
  const SpinorField<Real> b = imported(op.field(), Numbers(lattice.local_sites() * 12, source));
  try {
    solve(op, x, b, options);
    FAIL() << "no error";
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_NE(text.find("; "), std::string::npos) << "no remedy in: " << text;
    for (const std::string& word : words) {
      EXPECT_NE(text.find(word), std::string::npos) << "no \"" << word << "\" in: " << text;
    }
  }
}

TEST(Solver, SaysWhatToDo) {
  for (const bool red_black : {false, true}) {
    SolverOptions options;
    options.red_black = red_black;
    options.max_iterations = 3;
    expect_error<double>({"max_iterations", "after 3 iterations", "tolerance 1.00e-08"}, options);
    options.max_iterations = 1000;
    options.tolerance = 1e-12;
    expect_error<float>({"single precision ends here", "mixed"}, options);
    options.tolerance = 1e-20;
    expect_error<double>({"double precision ends here"}, options);
    options.tolerance = 0;
    expect_error<double>({"tolerance: found 0"}, options);
    options.tolerance = 1e-8;
    options.max_iterations = 0;
    expect_error<double>({"max_iterations: found 0"}, options);
    options.max_iterations = 10;
    expect_error<double>({"not finite"}, options, std::numeric_limits<double>::quiet_NaN());
  }
}

// Returns |b - M x| / |b| in double, by M as it is applied.
double true_residual(WilsonOperator<double>& op, const SpinorField<double>& x,
                     const SpinorField<double>& b) {
  SpinorField<double> r = op.field();
  op.apply(r, x);
  for (std::size_t k = 0; k < r.size(); ++k) r.data()[k] -= b.data()[k];
  return std::sqrt(reference::norm2(exported(r)) / reference::norm2(exported(b)));
}

// Unit links have the eigenvalue `mass`, of constant fields: |x|/|b| is about 1 / mass. Single
// precision ends at some 1e-7 |M| |x| / |b| then, far above what it is asked for.
void expect_mixed_solution(double mass, double tolerance, bool red_black) {
  const Lattice lattice({4, 4, 4, 4});
  const GaugeField<double> links(lattice);
  const GaugeField<float> single_links(lattice);
  WilsonOperator<double> op(links, mass);
  WilsonOperator<float> single(single_links, mass);
  Numbers source = random_spinor(lattice, 57);
  for (std::complex<double>& number : source) number += 1.0;
  const SpinorField<double> b = imported(op.field(), source);
  SpinorField<double> x = op.field();
  SolverOptions options;
  options.tolerance = tolerance;
  options.red_black = red_black;
  const Solution found = solve_mixed(op, single, x, b, options);
  EXPECT_LE(true_residual(op, x, b), tolerance);
  EXPECT_LE(found.residual, tolerance);
  EXPECT_EQ(found.history.size(), static_cast<std::size_t>(found.iterations));
  EXPECT_GT(std::sqrt(reference::norm2(exported(x)) / reference::norm2(source)), 0.3 / mass);
}

TEST(Solver, MixedPrecisionSolvesForLightQuarks) {
  for (const bool red_black : {false, true}) {
    expect_mixed_solution(1e-2, 1e-10, red_black);
    expect_mixed_solution(1e-3, 1e-10, red_black);
    expect_mixed_solution(1e-4, 1e-9, red_black);
    expect_mixed_solution(1e-7, 1e-6, red_black);  // single precision does not know such a mass
  }
}

// Conjugate gradient ends in as many steps as M^+ M has different eigenvalues, which no other way
// of going downhill does: 15 on 4^4 sites with unit links, by how many momenta are 0, +-pi/2 and
// pi.
TEST(Solver, EndsInAsManyStepsAsThereAreEigenvalues) {
  const Lattice lattice({4, 4, 4, 4});
  WilsonOperator<double> op(GaugeField<double>(lattice), 0.5);
  SpinorField<double> x = op.field();
  SolverOptions options;
  options.red_black = false;
  const SpinorField<double> b = imported(op.field(), random_spinor(lattice, 54));
  EXPECT_LE(solve(op, x, b, options).iterations, 15);
}

// Squares of these numbers leave the range of single precision, where |b| is a number like another.
TEST(Solver, SourcesMayHaveAnySize) {
  const Lattice lattice(global);
  const GaugeField<double> links = random_gauge(lattice, 51);
  WilsonOperator<float> op(as<float>(links), 0.5);
  WilsonOperator<double> exact(links, 0.5);
  for (const bool red_black : {false, true}) {
    const SolverOptions options{.tolerance = 1e-5, .red_black = red_black};
    expect_solutions_at_any_scale(op, exact, options.tolerance,
                                  [&](SpinorField<float>& x, const SpinorField<float>& b) {
                                    return solve(op, x, b, options);
                                  });
  }
}

TEST(Solver, TheIterationTakesSourcesOfAnySize) {
  const Lattice lattice(global);
  const GaugeField<double> links = random_gauge(lattice, 51);
  WilsonOperator<float> op(as<float>(links), 0.5);
  WilsonOperator<double> exact(links, 0.5);
  const SolverOptions options{.tolerance = 1e-5};
  expect_solutions_at_any_scale(
      op, exact, options.tolerance, [&](SpinorField<float>& x, const SpinorField<float>& b) {
        return conjugate_gradient<float>([&](SpinorField<float>& to, const SpinorField<float>& from,
                                             bool dagger) { op.apply(to, from, dagger); },
                                         x, b, options);
      });
}

TEST(Solver, RefusesSourcesWithoutANorm) {
  for (const bool red_black : {false, true}) {
    const SolverOptions options{.red_black = red_black};
    expect_error<double>({"b: |b| is inf, expected a finite number"}, options, 1e200);
    expect_error<float>({"b: |b| is inf, expected a finite number"}, options,
                        std::numeric_limits<double>::infinity());
  }
}

// The solution is some 1e39, which single precision has not.
TEST(Solver, SaysThatASolutionLeavesTheRange) {
  const Lattice lattice({4, 4, 4, 4});
  WilsonOperator<float> op(GaugeField<float>(lattice), 0.05);
  SpinorField<float> x = op.field();
  const SpinorField<float> b =
      imported(op.field(), Numbers(lattice.local_sites() * 12, std::complex<double>(1e38)));
  try {
    solve(op, x, b, {.tolerance = 1e-4});
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("x: "), std::string::npos) << error.what();
  }
}

// Returns the iterations that it took. Its error counts all that were allowed.
int mixed_iterations(const SolverOptions& options, double mass) {
  const Lattice lattice(global);
  const GaugeField<double> links = tepid_gauge(lattice, 1, 0.5);
  WilsonOperator<double> op(links, mass);
  WilsonOperator<float> single(as<float>(links), mass);
  const SpinorField<double> b = imported(op.field(), random_spinor(lattice, 3));
  SpinorField<double> x = op.field();
  try {
    return solve_mixed(op, single, x, b, options).iterations;
  } catch (const Error& error) {
    const std::string text = error.what();
    EXPECT_EQ(text.rfind("max_iterations: ", 0), 0U) << text;
    const std::string all = " after " + std::to_string(options.max_iterations) + " iterations";
    EXPECT_NE(text.find(all), std::string::npos) << text;
    return options.max_iterations;
  }
}

TEST(Solver, MixedPrecisionKeepsTheIterationsAllowed) {
  for (const double mass : {0.2, 50.0}) {
    for (const int allowed : {1, 2, 3, 5, 8, 12}) {
      const SolverOptions options{.tolerance = 1e-13, .max_iterations = allowed};
      EXPECT_LE(mixed_iterations(options, mass), allowed) << "mass " << mass;
    }
  }
}

TEST(Solver, BestEffortIsAgreedOn) {
  run_ranks(2, [](int rank) {
    const Lattice lattice(global, Communicator::world(), {1, 1, 1, 2});
    WilsonOperator<double> op(GaugeField<double>(lattice), 0.5);
    SpinorField<double> x = op.field();
    const SpinorField<double> b = imported(op.field(), random_spinor(lattice, 3));
    try {
      solve(op, x, b, {.best_effort = rank == 1});
      ADD_FAILURE() << "no error";
    } catch (const Error& error) {
      EXPECT_EQ(std::string(error.what()).rfind("best_effort: ", 0), 0U) << error.what();
    }
  });
}

TEST(Solver, NoHalves) {
  const Lattice lattice({3, 4, 4, 4});
  WilsonOperator<double> op(GaugeField<double>(lattice), 0.1);
  SpinorField<double> x = op.field();
  const SpinorField<double> b = imported(op.field(), random_spinor(lattice, 52));
  EXPECT_THROW(solve(op, x, b), Error);
  SolverOptions options;
  options.red_black = false;
  EXPECT_LE(solve(op, x, b, options).residual, options.tolerance);
}

TEST(Solver, NoSource) {
  const Lattice lattice(global);
  WilsonOperator<double> op(GaugeField<double>(lattice), 0.1);
  SpinorField<double> x = imported(op.field(), random_spinor(lattice, 53));
  const SpinorField<double> b = op.field();
  EXPECT_EQ(solve(op, x, b).iterations, 0);
  EXPECT_EQ(reference::norm2(exported(x)), 0.0);
}

TEST(Clover, NoInverse) {
  const Lattice lattice({2, 2, 2, 2});
  try {
    CloverOperator<double> op(GaugeField<double>(lattice), -4.0, 1.0);
    FAIL() << "no error";
  } catch (const Error& error) {
    EXPECT_NE(std::string(error.what()).find("site 0.0.0.0 has no inverse; take"),
              std::string::npos)
        << error.what();
  }
}

}  // namespace
}  // namespace ropewalk::lattice::test
