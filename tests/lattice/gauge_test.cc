// Tests random numbers, SU(3), gauge configurations, plaquettes: against known answers and the
// reference, on several grids of ranks.
#include <gtest/gtest.h>

#include <cmath>
#include <vector>

#include "lattice/support.hpp"
#include "ropewalk/lattice/random.hpp"
#include "ropewalk/lattice/su3.hpp"
#include "support/thread_mpi.hpp"

namespace ropewalk::lattice::test {
namespace {

using Words = std::array<std::uint32_t, 4>;
using ropewalk::test::run_ranks;

constexpr Extents global{4, 4, 2, 4};
const std::vector<Extents> grids{{1, 1, 1, 1}, {2, 1, 1, 1}, {1, 1, 1, 4},
                                 {1, 2, 2, 1}, {2, 2, 1, 2}, {4, 1, 2, 2}};

// The known-answer tests of the authors' Random123.
TEST(Random, PhiloxAnswers) {
  EXPECT_EQ(philox({0, 0, 0, 0}, {0, 0}), (Words{0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}));
  constexpr std::uint32_t ones = 0xffffffff;
  EXPECT_EQ(philox({ones, ones, ones, ones}, {ones, ones}),
            (Words{0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}));
  EXPECT_EQ(philox({0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344}, {0xa4093822, 0x299f31d0}),
            (Words{0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}));
}

TEST(Random, UniformAndNormal) {
  SiteRandom random(1, 2, 3);
  constexpr int draws = 40000;
  double uniform = 0;
  double normal = 0;
  double square = 0;
  for (int k = 0; k < draws; ++k) {
    const double u = random.uniform();
    EXPECT_GT(u, 0.0);
    EXPECT_LT(u, 1.0);
    uniform += u;
    const double n = random.normal();
    normal += n;
    square += n * n;
  }
  const double error = 4 / std::sqrt(draws);  // four standard deviations and more; seeds are fixed
  EXPECT_NEAR(uniform / draws, 0.5, error);
  EXPECT_NEAR(normal / draws, 0.0, error);
  EXPECT_NEAR(square / draws, 1.0, 2 * error);
  EXPECT_NE(SiteRandom(1, 2, 3).uniform(), SiteRandom(1, 3, 3).uniform());
  EXPECT_NE(SiteRandom(1, 2, 3).uniform(), SiteRandom(2, 2, 3).uniform());
  EXPECT_NE(SiteRandom(1, 2, 3).uniform(), SiteRandom(1, 2, 4).uniform());
}

TEST(Su3, ExponentialAndThirdRow) {
  const std::complex<double> i{0, 1};
  const Su3 algebra{0.7 * i, 2.0 + 1.0 * i, -0.3,    -2.0 + 1.0 * i, -1.2 * i,
                    3.0 * i, 0.3,           3.0 * i, 0.5 * i};
  const Su3 u = exponential(algebra);
  EXPECT_LT(unitarity_error(u), 1e-13);
  Su3 negative{};
  for (std::size_t k = 0; k < 9; ++k) negative[k] = -algebra[k];
  const Su3 one = multiply(u, exponential(negative));
  for (std::size_t k = 0; k < 9; ++k) EXPECT_LT(std::abs(one[k] - su3_identity()[k]), 1e-13);
  const Su3 phases = exponential({0.5 * i, 0, 0, 0, -0.2 * i, 0, 0, 0, -0.3 * i});
  EXPECT_LT(std::abs(phases[0] - std::polar(1.0, 0.5)), 1e-15);
  Su3 completed = u;
  completed[6] = completed[7] = completed[8] = 5;
  complete_third_row(completed);
  for (std::size_t k = 0; k < 9; ++k) EXPECT_LT(std::abs(completed[k] - u[k]), 1e-13);
  EXPECT_LT(std::abs(determinant({2, 0, 0, 0, 3, 0, 0, 0, i}) - 6.0 * i), 1e-15);
}

TEST(Su3, Reunitarise) {
  Lattice lattice({2, 2, 2, 2});
  GaugeField<double> gauge = random_gauge(lattice, 3);
  const Numbers before = plain(gauge);
  for (std::size_t k = 0; k < gauge.size(); ++k)
    gauge.data()[k] += 1e-6 * static_cast<double>(k % 7);
  reunitarise(gauge);
  EXPECT_LT(reference::distance(plain(gauge), before), 1e-5);
  for (std::size_t k = 0; k < gauge.size(); k += 9) {
    Su3 u{};
    std::copy(gauge.data() + k, gauge.data() + k + 9, u.begin());
    EXPECT_LT(unitarity_error(u), 1e-14);
  }
}

// <tr U> = 0 and <|tr U|^2> = 1 for Haar's measure.
TEST(Gauge, HotLinksAreUniform) {
  const Lattice lattice({4, 4, 4, 4});
  const GaugeField<double> gauge = random_gauge(lattice, 5);
  std::complex<double> sum = 0;
  double square = 0;
  double fourth = 0;
  const auto links = static_cast<double>(gauge.size() / 9);
  for (std::size_t k = 0; k < gauge.size(); k += 9) {
    const std::complex<double> t = gauge.data()[k] + gauge.data()[k + 4] + gauge.data()[k + 8];
    sum += t;
    square += std::norm(t);
    fourth += std::norm(t) * std::norm(t);
  }
  EXPECT_LT(std::abs(sum) / links, 4 / std::sqrt(links));
  EXPECT_NEAR(square / links, 1, 5 / std::sqrt(links));
  EXPECT_NEAR(fourth / links, 2, 20 / std::sqrt(links));
}

// The expectation is 1 - <Re tr U>/3 = width^2 <tr H^2>/6 + ..., with <tr H^2> = 8 / 2.
TEST(Gauge, TepidLinksAreNearOne) {
  const Lattice lattice({4, 4, 4, 4});
  const double width = 0.1;
  const GaugeField<double> gauge = tepid_gauge(lattice, 6, width);
  EXPECT_NEAR(1 - link_trace(gauge), width * width * 4 / 6, 1e-3);
  EXPECT_LT(plaquette(gauge), 1.0);
  EXPECT_GT(plaquette(gauge), 0.9);
}

TEST(Gauge, UnitLinks) {
  const Lattice lattice(global);
  const GaugeField<double> gauge(lattice);
  EXPECT_DOUBLE_EQ(plaquette(gauge), 1.0);
  EXPECT_DOUBLE_EQ(link_trace(gauge), 1.0);
}

// Fields and numbers are the same on every grid of ranks.
TEST(Gauge, GridsOfRanks) {
  const Lattice alone(global);
  const Numbers gauge = plain(random_gauge(alone, 7));
  const Numbers g = random_transformation(alone, 8);
  const Numbers psi = random_spinor(alone, 9, 3);
  const Numbers tepid = plain(tepid_gauge(alone, 7, 0.3));
  const Numbers moved = reference::transform_gauge(global, gauge, g);
  for (const Extents& grid : grids) {
    run_ranks(ranks_of(grid), [&](int) {
      const Lattice lattice(global, Communicator::world(), grid);
      const GaugeField<double> own = random_gauge(lattice, 7);
      const Numbers own_g = random_transformation(lattice, 8);
      EXPECT_EQ(plain(own), local_part(lattice, gauge));
      EXPECT_EQ(own_g, local_part(lattice, g));
      EXPECT_EQ(random_spinor(lattice, 9, 3), local_part(lattice, psi));
      EXPECT_EQ(plain(tepid_gauge(lattice, 7, 0.3)), local_part(lattice, tepid));
      EXPECT_NEAR(plaquette(own), reference::plaquette(global, gauge), 1e-14);
      EXPECT_NEAR(link_trace(own), reference::link_trace(global, gauge), 1e-14);
      const GaugeField<double> own_moved = transform_gauge(own, own_g);
      EXPECT_LT(reference::distance(plain(own_moved), local_part(lattice, moved)), 1e-14);
      EXPECT_LT(reference::distance(transform_spinor(random_spinor(lattice, 9, 3), own_g),
                                    local_part(lattice, reference::transform_spinor(psi, g, 3))),
                1e-14);
    });
  }
}

}  // namespace
}  // namespace ropewalk::lattice::test
