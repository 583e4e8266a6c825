// Faces of 16-bit numbers (FacePrecision::half): how far results are off, by theory; that the size
// of a field does not matter; and what becomes of a solution.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstddef>
#include <limits>
#include <random>
#include <string>
#include <vector>

#include "lattice/proof_tools.hpp"
#include "lattice/proofs.hpp"
#include "ropewalk/lattice/bicgstab.hpp"
#include "ropewalk/lattice/conjugate_gradient.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::lattice::test {
namespace {

using ropewalk::test::run_ranks;

constexpr Extents global{4, 4, 4, 8};
constexpr double half_rounding = 0x1p-11;  // of a number; 11 bits are kept
// Numbers of double precision are rounded twice, and all of them before that.
constexpr double half_bound = 1.01 * half_rounding;

OperatorOptions options_of(FacePrecision precision, ExchangeMode exchange = ExchangeMode::overlap,
                           Strategy strategy = Strategy::concurrent) {
  OperatorOptions out;
  out.exchange = exchange;
  out.strategy = strategy;
  out.antiperiodic_time = true;
  out.face_precision = precision;
  return out;
}

template <class Real>
Numbers hopped(const Lattice& lattice, const OperatorOptions& options, const Numbers& psi,
               bool dagger = false, int lanes = 0) {
  const GaugeField<Real> gauge = as<Real>(random_gauge(lattice, gauge_seed));
  HoppingTerm<Real> op(gauge, Layout(lattice, sizeof(Real), Vectors::space, 1, lanes), options);
  SpinorField<Real> out = op.field();
  op.hop(out, imported(op.field(), psi), dagger);
  return exported(out);
}

double site_norm(const Numbers& field, std::size_t site) {
  double out = 0;
  for (std::size_t k = 0; k < 12; ++k) out += std::norm(field[site * 12 + k]);
  return std::sqrt(out);
}

// Of a site, how many of the eight neighbours other ranks have.
int remote_neighbours(const Lattice& lattice, std::size_t site) {
  const Extents x = reference::site(lattice.local(), site);
  int out = 0;
  for (std::size_t d = 0; d < dimensions; ++d) {
    if (!lattice.divided(static_cast<int>(d))) continue;
    out += (x[d] == 0 ? 1 : 0) + (x[d] == lattice.local()[d] - 1 ? 1 : 0);
  }
  return out;
}

bool any_remote(const Lattice& lattice) {
  bool out = false;
  for (int d = 0; d < dimensions; ++d) out = out || lattice.divided(d);
  return out;
}

// What a neighbour adds to D_h is at most as large as it is, and a face is off by 2^-11 of itself.
template <class Real>
void expect_bounded(const Lattice& lattice, const Numbers& psi, bool dagger) {
  const Numbers whole = hopped<Real>(lattice, options_of(FacePrecision::full), psi, dagger);
  const Numbers half = hopped<Real>(lattice, options_of(FacePrecision::half), psi, dagger);
  double largest = 0;
  for (std::size_t n = 0; n < lattice.local_sites(); ++n) {
    largest = std::max(largest, site_norm(psi, n));
  }
  for (int rank = 0; rank < lattice.size(); ++rank) {  // the largest of all ranks
    double one = lattice.rank() == rank ? largest : 0;
    lattice.sum(&one, 1);
    largest = std::max(largest, one);
  }
  double error = 0;
  for (std::size_t n = 0; n < lattice.local_sites(); ++n) {
    const double off = site_norm(add(half, -1, whole), n);
    const int remote = remote_neighbours(lattice, n);
    ASSERT_LE(off, half_bound * remote * largest) << "site " << n;  // 0 where nothing comes in
    error = std::max(error, off);
  }
  EXPECT_EQ(error > 0, any_remote(lattice)) << "faces of 16 bits were not used";
}

const std::vector<Extents> grids{{1, 1, 1, 1}, {2, 1, 1, 1}, {1, 1, 1, 2},
                                 {1, 1, 1, 4}, {2, 1, 2, 1}, {2, 2, 1, 2}};

TEST(HalfFaces, ErrorsAsTheorySays) {
  for (const Extents& grid : grids) {
    run_ranks(ranks_of(grid), [&](int) {
      const Lattice lattice(global, Communicator::world(), grid);
      for (const bool dagger : {false, true}) {
        expect_bounded<double>(lattice, random_spinor(lattice, 61), dagger);
        expect_bounded<float>(lattice, random_spinor(lattice, 62), dagger);
      }
    });
  }
}

// Numbers from 1e-9 to 1, far more than binary16 spans: the large ones set the scale, and what is
// lost of the small ones is small beside them.
TEST(HalfFaces, WideRange) {
  run_ranks(2, [](int) {
    const Lattice lattice(global, Communicator::world(), {1, 1, 1, 2});
    Numbers psi = random_spinor(lattice, 63);
    std::mt19937 random(64);
    std::uniform_real_distribution<double> decades(-9, 0);
    for (std::complex<double>& number : psi) number *= std::pow(10, decades(random));
    expect_bounded<double>(lattice, psi, false);
    expect_bounded<float>(lattice, psi, false);
  });
}

// A field of another power of two gives the same bits but for this: none is too small or too large
// for 16 bits, as residuals in a solver become.
template <class Real>
void expect_scaled(const Lattice& lattice, int exponent) {
  const Numbers psi = random_spinor(lattice, 65);
  Numbers scaled = psi;
  const double factor = std::ldexp(1.0, exponent);
  for (std::complex<double>& number : scaled) number *= factor;
  Numbers expected = hopped<Real>(lattice, options_of(FacePrecision::half), psi);
  for (std::complex<double>& number : expected) number *= factor;
  EXPECT_EQ(hopped<Real>(lattice, options_of(FacePrecision::half), scaled), expected) << exponent;
}

TEST(HalfFaces, FieldsOfAnySize) {
  run_ranks(2, [](int) {
    const Lattice lattice(global, Communicator::world(), {1, 1, 2, 1});
    for (const int exponent : {-90, -30, 20, 100}) {
      expect_scaled<float>(lattice, exponent);
      expect_scaled<double>(lattice, 8 * exponent);
    }
    const Numbers zero(lattice.local_sites() * 12);
    EXPECT_EQ(hopped<float>(lattice, options_of(FacePrecision::half), zero), zero);
  });
}

// What is not finite must not become finite on the way.
TEST(HalfFaces, NotFiniteStaysSo) {
  run_ranks(2, [](int rank) {
    const Lattice lattice(global, Communicator::world(), {1, 1, 1, 2});
    for (const double bad : {std::numeric_limits<double>::infinity(), std::nan("")}) {
      Numbers psi = random_spinor(lattice, 66);
      if (rank == 0) psi[0] = bad;  // at t = 0, which both faces of rank 0 and 1 touch
      const Numbers out = hopped<float>(lattice, options_of(FacePrecision::half), psi);
      const std::size_t last = lattice.local_sites() - lattice.local_sites() / 4;
      EXPECT_EQ(std::isfinite(site_norm(out, last)), rank == 0) << bad;
    }
  });
}

// Conversions by each instruction set, and those without help of the hardware.
template <class Real>
void expect_same_for_all_lanes(const Lattice& lattice) {
  const Numbers psi = random_spinor(lattice, 67);
  const OperatorOptions options = options_of(FacePrecision::half);
  const Numbers first = hopped<Real>(lattice, options, psi, false, 1);
  for (const int lanes : {2, 4, 8, 16}) {
    Numbers found;
    try {
      found = hopped<Real>(lattice, options, psi, false, lanes);
    } catch (const Error&) {
      continue;  // this machine has no such vectors
    }
    require_close(found, first, rounding<Real>(), std::to_string(lanes) + " lanes");
  }
}

TEST(HalfFaces, EveryInstructionSet) {
  for (const Extents& grid : {Extents{1, 1, 1, 2}, Extents{2, 1, 1, 1}}) {
    run_ranks(2, [&](int) {
      const Lattice lattice(global, Communicator::world(), grid);
      expect_same_for_all_lanes<float>(lattice);
      expect_same_for_all_lanes<double>(lattice);
    });
  }
}

TEST(HalfFaces, EveryWayTheSameBits) {
  run_ranks(4, [](int) {
    const Lattice lattice(global, Communicator::world(), {2, 1, 1, 2});
    std::vector<OperatorOptions> ways;
    for (const ExchangeMode exchange : {ExchangeMode::sequential, ExchangeMode::overlap}) {
      for (const Strategy strategy :
           {Strategy::concurrent, Strategy::sequential, Strategy::direct, Strategy::put}) {
        ways.push_back(options_of(FacePrecision::half, exchange, strategy));
        ways.back().threads = 1 + static_cast<int>(ways.size()) % 3;
      }
    }
    prove_ways_equal<double>(lattice, ways);
    prove_ways_equal<float>(lattice, ways);
    ways.resize(3);
    prove_domain_wall_ways_equal<double>(lattice, ways);
    prove_domain_wall_ways_equal<float>(lattice, ways);
  });
}

TEST(HalfFaces, BytesOnTheWire) {
  run_ranks(2, [](int) {
    const Lattice lattice({8, 8, 8, 8}, Communicator::world(), {1, 1, 1, 2});
    const auto bytes = [&](FacePrecision precision, auto real) {
      using Real = decltype(real);
      const Layout layout(lattice, sizeof(Real));
      return static_cast<double>(
          HoppingTerm<Real>(GaugeField<Real>(lattice), layout, options_of(precision))
              .exchanged_bytes());
    };
    EXPECT_EQ(bytes(FacePrecision::full, 0.0F), 2 * 512 * 12 * 4 * 2 / 2.0);
    EXPECT_NEAR(bytes(FacePrecision::half, 0.0F) / bytes(FacePrecision::full, 0.0F), 0.5, 0.03);
    EXPECT_NEAR(bytes(FacePrecision::half, 0.0) / bytes(FacePrecision::full, 0.0), 0.25, 0.015);
  });
}

TEST(HalfFaces, RanksMustAgree) {
  run_ranks(2, [](int rank) {
    const Lattice lattice(global, Communicator::world(), {1, 1, 1, 2});
    const auto wanted = rank == 0 ? FacePrecision::half : FacePrecision::full;
    try {
      const WilsonOperator<float> op(GaugeField<float>(lattice), 0.1, options_of(wanted));
      FAIL() << "no error";
    } catch (const Error& error) {
      EXPECT_NE(std::string(error.what()).find("face_precision"), std::string::npos);
    }
  });
}

// Of b - M x, by the whole M in double precision.
template <class Operator>
double true_residual(Operator& op, const SpinorField<double>& x, const SpinorField<double>& b) {
  SpinorField<double> r = op.field();
  op.apply(r, x);
  const Numbers off = add(exported(r), -1, exported(b));
  const double size = dot(op.lattice(), exported(b), exported(b)).real();
  return std::sqrt(dot(op.lattice(), off, off).real() / size);
}

constexpr Extents few{4, 4, 4, 8};

// Conjugate gradient with such faces alone ends near their rounding. As the single-precision part
// of solve_mixed() it costs few iterations more, and the solution is as good as any.
TEST(HalfFaces, Solutions) {
  run_ranks(2, [](int) {
    const Lattice lattice(few, Communicator::world(), {1, 1, 1, 2});
    const GaugeField<double> links = random_gauge(lattice, 51);
    WilsonOperator<double> op(links, 0.1, options_of(FacePrecision::full));
    WilsonOperator<float> single(as<float>(links), 0.1, options_of(FacePrecision::full));
    WilsonOperator<float> half(as<float>(links), 0.1, options_of(FacePrecision::half));
    WilsonOperator<double> twice(links, 0.1, options_of(FacePrecision::half));
    const SpinorField<double> b = imported(op.field(), random_spinor(lattice, 52));

    SolverOptions options;
    options.tolerance = 1e-3;
    SpinorField<double> rough = op.field();
    const Solution alone = solve(twice, rough, b, options);
    EXPECT_LE(alone.residual, 1e-3);  // by the operator that was solved
    EXPECT_LE(true_residual(op, rough, b), 3e-3);

    options.tolerance = 1e-11;
    SpinorField<double> x = op.field(), y = op.field();
    const Solution with_full = solve_mixed(op, single, x, b, options);
    const Solution with_half = solve_mixed(op, half, y, b, options);
    EXPECT_LE(true_residual(op, x, b), 1e-11);
    EXPECT_LE(true_residual(op, y, b), 1e-11);
    RecordProperty("iterations_full", with_full.iterations);
    RecordProperty("iterations_half", with_half.iterations);
    EXPECT_LE(with_half.iterations, 2 * with_full.iterations);
    EXPECT_THROW(solve_mixed(twice, half, y, b, options), Error);
  });
}

// The same by BiCGStab, with corrections that the caller makes.
TEST(HalfFaces, SolutionsByBicgstab) {
  run_ranks(2, [](int) {
    const Lattice lattice(few, Communicator::world(), {1, 1, 1, 2});
    const GaugeField<double> links = random_gauge(lattice, 51);
    CloverOperator<double> op(links, 0.5, 1.0, options_of(FacePrecision::full));
    CloverOperator<double> half(links, 0.5, 1.0, options_of(FacePrecision::half));
    const SpinorField<double> b = imported(op.field(), random_spinor(lattice, 52));
    SpinorField<double> x = op.field();
    double residual = 1;
    int corrections = 0;
    for (; residual > 1e-10 && corrections < 8; ++corrections) {
      SpinorField<double> r = op.field(), d = op.field();
      op.apply(r, x);
      for (std::size_t k = 0; k < r.size(); ++k) r.data()[k] = b.data()[k] - r.data()[k];
      SolverOptions options;
      options.tolerance = 1e-3;
      solve_bicgstab(half, d, r, options);
      for (std::size_t k = 0; k < x.size(); ++k) x.data()[k] += d.data()[k];
      const double before = residual;
      residual = true_residual(op, x, b);
      EXPECT_LE(residual, before / 50);
    }
    EXPECT_LE(residual, 1e-10);
  });
}

}  // namespace
}  // namespace ropewalk::lattice::test
