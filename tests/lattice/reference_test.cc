// Checks the reference by identities that need no second implementation.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "lattice/reference.hpp"

namespace ropewalk::reference {
namespace {

constexpr double rounding = 1e-13;

Vector random_vector(std::size_t size, unsigned seed) {
  std::mt19937_64 engine(seed);
  std::normal_distribution<double> normal;
  Vector out(size);
  for (Complex& number : out) number = {normal(engine), normal(engine)};
  return out;
}

// Gram-Schmidt on two random rows; the third is their conjugate cross product.
Vector random_su3(std::size_t count, unsigned seed) {
  Vector out = random_vector(count * 9, seed);
  for (std::size_t n = 0; n < count; ++n) {
    Complex* a = &out[n * 9];
    Complex* b = a + 3;
    const double length = std::sqrt(std::norm(a[0]) + std::norm(a[1]) + std::norm(a[2]));
    for (int k = 0; k < 3; ++k) a[k] /= length;
    const Complex overlap =
        std::conj(a[0]) * b[0] + std::conj(a[1]) * b[1] + std::conj(a[2]) * b[2];
    for (int k = 0; k < 3; ++k) b[k] -= overlap * a[k];
    const double rest = std::sqrt(std::norm(b[0]) + std::norm(b[1]) + std::norm(b[2]));
    for (int k = 0; k < 3; ++k) b[k] /= rest;
    for (int k = 0; k < 3; ++k) {
      a[6 + k] = std::conj(a[(k + 1) % 3] * b[(k + 2) % 3] - a[(k + 2) % 3] * b[(k + 1) % 3]);
    }
  }
  return out;
}

Background random_background(const Extents& extents, unsigned seed) {
  return {extents, random_su3(volume(extents) * 4, seed), {1, 1, 1, -1}};
}

std::size_t size_of_field(const Extents& extents, int ls = 1) {
  return volume(extents) * spinor_numbers * static_cast<std::size_t>(ls);
}

constexpr Extents small{4, 2, 3, 2};
constexpr Extents even{2, 4, 2, 4};

TEST(ReferenceGamma, CliffordAlgebra) {
  for (int mu = 0; mu < 5; ++mu) {
    for (int nu = 0; nu < 5; ++nu) {
      const Gamma forward = multiply(gamma(mu), gamma(nu));
      const Gamma backward = multiply(gamma(nu), gamma(mu));
      for (std::size_t a = 0; a < 4; ++a) {
        EXPECT_EQ(gamma(mu)[a][nu % 4], std::conj(gamma(mu)[static_cast<std::size_t>(nu % 4)][a]));
        for (std::size_t b = 0; b < 4; ++b) {
          EXPECT_EQ(forward[a][b] + backward[a][b], (mu == nu && a == b) ? 2.0 : 0.0);
        }
      }
    }
  }
  const Gamma product = multiply(multiply(gamma(0), gamma(1)), multiply(gamma(2), gamma(3)));
  EXPECT_EQ(product, gamma(4));
}

TEST(ReferenceSites, IndexAndBack) {
  for (std::size_t n = 0; n < volume(small); ++n) EXPECT_EQ(index(small, site(small, n)), n);
  EXPECT_EQ(index(small, {1, 0, 0, 0}), 1U);
  EXPECT_EQ(index(small, {-1, 2, 0, 0}), 3U);
}

TEST(ReferenceWilson, Gamma5Hermitian) {
  const Background field = random_background(small, 1);
  const Vector psi = random_vector(size_of_field(small), 2);
  const Vector other = gamma5(wilson(field, gamma5(psi), 0.1));
  EXPECT_LT(distance(wilson(field, psi, 0.1, true), other), rounding);
  const Vector phi = random_vector(psi.size(), 3);
  EXPECT_LT(std::abs(dot(phi, wilson(field, psi, 0.1)) - dot(wilson(field, phi, 0.1, true), psi)),
            rounding * norm2(psi));
}

TEST(ReferenceWilson, PlaneWavesOfTheFreeField) {
  const Extents extents{4, 3, 2, 4};
  const Background free{extents, unit_gauge(extents), {1, 1, 1, -1}};
  const double pi = std::acos(-1.0);
  const Momentum p{2 * pi / 4, 2 * pi * 2 / 3, pi, pi / 4 * 3};  // antiperiodic in t
  std::array<Complex, 12> u{};
  const Vector numbers = random_vector(12, 4);
  std::copy(numbers.begin(), numbers.end(), u.begin());
  std::array<Complex, 12> expected{};
  const Gamma at_p = wilson_at(p, 0.2);
  for (std::size_t a = 0; a < 12; ++a) {
    for (std::size_t b = 0; b < 4; ++b) expected[a] += at_p[a / 3][b] * u[b * 3 + a % 3];
  }
  EXPECT_LT(
      distance(wilson(free, plane_wave(extents, p, u), 0.2), plane_wave(extents, p, expected)),
      rounding);
}

TEST(ReferenceWilson, EvenAndOddPartsAreTheWhole) {
  const Background field = random_background(even, 5);
  const Vector psi = random_vector(size_of_field(even), 6);
  const Vector from_odd = hop(field, only(1, even, psi, spinor_numbers));
  const Vector from_even = hop(field, only(0, even, psi, spinor_numbers));
  EXPECT_EQ(norm2(only(1, even, from_odd, spinor_numbers)), 0.0);
  EXPECT_EQ(norm2(only(0, even, from_even, spinor_numbers)), 0.0);
  Vector sum = from_odd;
  for (std::size_t k = 0; k < sum.size(); ++k) sum[k] += from_even[k];
  EXPECT_LT(distance(sum, hop(field, psi)), rounding);
}

TEST(ReferenceGauge, Covariance) {
  const Background field = random_background(small, 7);
  const Vector g = random_su3(volume(small), 8);
  const Vector psi = random_vector(size_of_field(small), 9);
  const Background other{small, transform_gauge(small, field.gauge, g), field.boundary};
  const Vector moved = transform_spinor(psi, g);
  EXPECT_LT(distance(wilson(other, moved, 0.1), transform_spinor(wilson(field, psi, 0.1), g)),
            rounding);
  EXPECT_LT(
      distance(clover(other, moved, 0.1, 1.2), transform_spinor(clover(field, psi, 0.1, 1.2), g)),
      rounding);
  EXPECT_NEAR(plaquette(small, other.gauge), plaquette(small, field.gauge), rounding);
  EXPECT_DOUBLE_EQ(plaquette(small, unit_gauge(small)), 1.0);
  EXPECT_DOUBLE_EQ(link_trace(small, unit_gauge(small)), 1.0);
}

TEST(ReferenceClover, HermitianChiralAndInverted) {
  const Background field = random_background(small, 10);
  const Vector term = clover_term(small, field.gauge, 0.1, 1.3);
  const Vector psi = random_vector(size_of_field(small), 11);
  const Vector phi = random_vector(psi.size(), 12);
  EXPECT_LT(std::abs(dot(phi, apply_term(term, psi)) - dot(apply_term(term, phi), psi)),
            rounding * norm2(psi));
  EXPECT_LT(distance(gamma5(apply_term(term, gamma5(psi))), apply_term(term, psi)), rounding);
  EXPECT_LT(distance(apply_term(invert_term(term), apply_term(term, psi)), psi), 1e-12);
  EXPECT_LT(distance(clover(field, psi, 0.1, 0.0), wilson(field, psi, 0.1)), rounding);
}

// Links of the mirrored lattice, x_d -> -x_d.
Vector mirrored(const Extents& extents, const Vector& gauge, std::size_t d) {
  Vector out;
  for (std::size_t n = 0; n < volume(extents); ++n) {
    Site x = site(extents, n);
    x[d] = -x[d];
    Site below = x;
    --below[d];
    for (int mu = 0; mu < 4; ++mu) {
      const Matrix u = static_cast<std::size_t>(mu) == d ? adjoint(link(extents, gauge, below, mu))
                                                         : link(extents, gauge, x, mu);
      for (const auto& row : u) out.insert(out.end(), row.begin(), row.end());
    }
  }
  return out;
}

// A mirror swaps the leaves, so all four must be there: F changes sign in planes with d.
TEST(ReferenceClover, FieldStrengthInTheMirror) {
  const Extents extents{4, 3, 4, 3};
  const Background field = random_background(extents, 18);
  const Site x{1, 2, 3, 1};
  for (std::size_t d = 0; d < 4; ++d) {
    const Vector other = mirrored(extents, field.gauge, d);
    Site image = x;
    image[d] = -image[d];
    for (int mu = 0; mu < 4; ++mu) {
      for (int nu = mu + 1; nu < 4; ++nu) {
        const bool turned = static_cast<std::size_t>(mu) == d || static_cast<std::size_t>(nu) == d;
        const Matrix here = field_strength(extents, field.gauge, x, mu, nu);
        const Matrix there = field_strength(extents, other, image, mu, nu);
        for (std::size_t k = 0; k < 9; ++k) {
          const Complex expected = (turned ? -1.0 : 1.0) * here[k / 3][k % 3];
          EXPECT_LT(std::abs(there[k / 3][k % 3] - expected), rounding);
        }
      }
    }
  }
}

// Makes a constant U(1) field in the plane x, y (colour 0 alone): flux quanta around the torus.
Vector constant_flux(const Extents& extents, int quanta) {
  const double pi = std::acos(-1.0);
  const double field = 2 * pi * quanta / (extents[0] * extents[1]);
  Vector out = unit_gauge(extents);
  for (std::size_t n = 0; n < volume(extents); ++n) {
    const Site x = site(extents, n);
    out[(n * 4 + 1) * 9] = std::polar(1.0, field * x[0]);
    if (x[0] == extents[0] - 1) out[n * 4 * 9] = std::polar(1.0, -field * extents[0] * x[1]);
  }
  return out;
}

// Uses inverse iteration on M^+ M at mass 0, with conjugate gradient.
double lowest_singular_value(const Background& field, double csw) {
  Vector v = random_vector(size_of_field(field.extents), 13);
  for (std::size_t k = 0; k < v.size(); ++k) {
    if (k % 3 != 0) v[k] = 0;  // the colour that feels the field
  }
  const Vector term = clover_term(field.extents, field.gauge, 0.0, csw);
  const auto apply = [&](const Vector& x, bool dagger) {
    Vector out = hop(field, x, dagger);
    const Vector local = apply_term(term, x);
    for (std::size_t k = 0; k < out.size(); ++k) out[k] += local[k];
    return out;
  };
  const auto normal = [&](const Vector& x) { return apply(apply(x, false), true); };
  double value = 0;
  for (int iteration = 0; iteration < 4; ++iteration) {
    const double scale = 1 / std::sqrt(norm2(v));
    for (Complex& number : v) number *= scale;
    Vector x(v.size());
    Vector r = v;
    Vector p = r;
    for (double rr = norm2(r); rr > 1e-20;) {
      const Vector q = normal(p);
      const double alpha = rr / dot(p, q).real();
      for (std::size_t k = 0; k < x.size(); ++k) {
        x[k] += alpha * p[k];
        r[k] -= alpha * q[k];
      }
      const double next = norm2(r);
      for (std::size_t k = 0; k < p.size(); ++k) p[k] = r[k] + next / rr * p[k];
      rr = next;
    }
    value = 1 / std::sqrt(dot(v, x).real());
    v = x;
  }
  return value;
}

// In a constant field B the lowest Landau level has no energy in the continuum. Wilson's term
// lifts it by B/2; the clover term with csw = 1 takes just that away (Sheikholeslami and Wohlert):
// this fixes its sign and its size.
TEST(ReferenceClover, TakesAwayWilsonsShiftOfTheLowestLandauLevel) {
  const Extents plane{6, 6, 1, 1};
  const Background field{plane, constant_flux(plane, 2), {1, 1, 1, 1}};
  const Matrix f = field_strength(plane, field.gauge, {2, 3, 0, 0}, 0, 1);
  const double b = 2 * std::acos(-1.0) * 2 / 36;
  EXPECT_NEAR(f[0][0].imag(), std::sin(b), rounding);
  EXPECT_NEAR(plaquette(plane, field.gauge), (5 + (2 + std::cos(b)) / 3) / 6, rounding);
  const double wilson_shift = lowest_singular_value(field, 0.0);
  EXPECT_NEAR(wilson_shift, b / 2, 0.05 * b);
  EXPECT_LT(lowest_singular_value(field, 1.0), 0.1 * wilson_shift);
  EXPECT_GT(lowest_singular_value(field, -1.0), 1.8 * wilson_shift);
}

TEST(ReferenceDomainWall, DenseMatrix) {
  const Extents tiny{2, 1, 2, 2};
  const Background field = random_background(tiny, 14);
  const DomainWall wall{3, 1.8, 0.1};
  const Vector matrix = domain_wall_matrix(field, wall);
  const Vector psi = random_vector(size_of_field(tiny, wall.ls), 15);
  EXPECT_LT(distance(domain_wall(field, psi, wall), apply_matrix(matrix, psi)), rounding);
  Vector dagger(matrix.size());
  const std::size_t size = psi.size();
  for (std::size_t k = 0; k < matrix.size(); ++k) {
    dagger[k] = std::conj(matrix[k % size * size + k / size]);
  }
  EXPECT_LT(distance(domain_wall(field, psi, wall, true), apply_matrix(dagger, psi)), rounding);
}

TEST(ReferenceDomainWall, HermitianUnderGamma5AndReflection) {
  const Background field = random_background(small, 16);
  const DomainWall wall{4, 1.8, 0.05};
  const Vector psi = random_vector(size_of_field(small, wall.ls), 17);
  const Vector turned =
      gamma5_reflected(domain_wall(field, gamma5_reflected(psi, wall.ls), wall), wall.ls);
  EXPECT_LT(distance(domain_wall(field, psi, wall, true), turned), rounding);
}

// At mass 1 the fifth dimension is antiperiodic (the Pauli-Villars field): waves with half-integer
// momentum are eigenvectors. This fixes the sign of the mass.
TEST(ReferenceDomainWall, AntiperiodicInTheFifthDimensionAtMassOne) {
  const Extents extents{2, 2, 2, 2};
  const Background free{extents, unit_gauge(extents), {1, 1, 1, 1}};
  const DomainWall wall{4, 1.7, 1.0};
  const double theta = 3 * std::acos(-1.0) / wall.ls;
  for (const std::size_t spin : {std::size_t{1}, std::size_t{2}}) {
    Vector psi(size_of_field(extents, wall.ls));
    for (std::size_t n = 0; n < psi.size() / 12; ++n) {
      psi[n * 12 + spin * 3] = std::polar(1.0, theta * static_cast<double>(n % 4));
    }
    const Complex value = 1 - wall.height - std::polar(1.0, spin < 2 ? -theta : theta);
    Vector expected = psi;
    for (Complex& number : expected) number *= value;
    EXPECT_LT(distance(domain_wall(free, psi, wall), expected), rounding);
  }
}

// At mass 0 on unit links, a mode that is bound to the wall: constant in space, right-handed, and
// falling by 1 - M5 a step away from s = Ls-1, is annihilated but for its tail at the far wall.
TEST(ReferenceDomainWall, ZeroModeOnTheWall) {
  const Extents extents{2, 2, 2, 2};
  const Background free{extents, unit_gauge(extents), {1, 1, 1, 1}};
  const DomainWall wall{12, 1.8, 0.0};
  Vector psi(size_of_field(extents, wall.ls));
  for (std::size_t n = 0; n < volume(extents); ++n) {
    for (int s = 0; s < wall.ls; ++s) {
      psi[(n * 12 + static_cast<std::size_t>(s)) * 12] = std::pow(1 - wall.height, wall.ls - 1 - s);
    }
  }
  const double tail = 16 * std::pow(1 - wall.height, 2 * wall.ls);
  EXPECT_NEAR(norm2(domain_wall(free, psi, wall)), tail, 1e-12);
}

}  // namespace
}  // namespace ropewalk::reference
