// Lattice operators written out naively, in double, on plain arrays of one whole lattice: what the
// fast ones are held against. Nothing here is shared with them, and nothing here is fast.
//
// Arrays are those of the interchange format: sites with x fastest, gauge[site][mu][row][column],
// spinor[site][spin][colour], 5-d spinor[site][s][spin][colour].
#pragma once

#include <array>
#include <complex>
#include <cstddef>
#include <vector>

namespace ropewalk::reference {

using Complex = std::complex<double>;
using Vector = std::vector<Complex>;
using Extents = std::array<int, 4>;
using Site = std::array<int, 4>;
using Momentum = std::array<double, 4>;
using Gamma = std::array<std::array<Complex, 4>, 4>;
using Matrix = std::array<std::array<Complex, 3>, 3>;

inline constexpr int colours = 3;
inline constexpr int spins = 4;
inline constexpr std::size_t spinor_numbers = 12;
inline constexpr std::size_t link_numbers = 9;

// DeGrand-Rossi basis: 0 to 3 for x, y, z, t; 4 is their product, gamma5 = diag(1, 1, -1, -1).
const Gamma& gamma(int mu);
Gamma multiply(const Gamma&, const Gamma&);
Gamma sigma(int mu, int nu);  // (i/2) [gamma_mu, gamma_nu]

std::size_t volume(const Extents&);
std::size_t index(const Extents&, const Site&);  // coordinates wrap around
Site site(const Extents&, std::size_t index);
int parity(const Site&);  // 0 even, 1 odd

// A gauge field and the phases that a fermion takes when it hops over the edge of the lattice.
struct Background {
  Extents extents;
  Vector gauge;
  std::array<double, 4> boundary{1, 1, 1, 1};
};

Matrix link(const Extents&, const Vector& gauge, const Site&, int mu);
Matrix adjoint(const Matrix&);
Matrix multiply(const Matrix&, const Matrix&);

// D_h psi(x) = -1/2 sum_mu [(1-g_mu) U_mu(x) psi(x+mu) + (1+g_mu) U_mu^+(x-mu) psi(x-mu)]; its
// dagger has the signs of gamma swapped.
Vector hop(const Background&, const Vector& psi, bool dagger = false);
Vector wilson(const Background&, const Vector& psi, double mass, bool dagger = false);

// The field with the sites of the other parity set to zero.
Vector only(int parity, const Extents&, const Vector& psi, std::size_t numbers_a_site);

// Mean over sites and planes of Re tr P / 3, and over links of Re tr U / 3.
double plaquette(const Extents&, const Vector& gauge);
double link_trace(const Extents&, const Vector& gauge);

// Field strength F = (Q - Q^+)/8 with Q the sum of the four leaves around x in the plane mu, nu,
// each beginning and ending at x (Luescher et al., Nucl. Phys. B478 (1996) 365, eq. 2.24).
Matrix field_strength(const Extents&, const Vector& gauge, const Site&, int mu, int nu);
// [site][12][12], spin-colour by spin-colour: A = 4 + m + csw (i/2) sum_{mu<nu} sigma_munu F_munu.
Vector clover_term(const Extents&, const Vector& gauge, double mass, double csw);
Vector apply_term(const Vector& term, const Vector& psi);
Vector invert_term(const Vector& term);  // each site's 12 x 12, by Gauss-Jordan elimination
Vector clover(const Background&, const Vector& psi, double mass, double csw, bool dagger = false);

// Shamir's domain-wall operator, (5 - M5) + D_h - P_- psi(s+1) - P_+ psi(s-1), where the step
// across the ends of s has +mass in place of -1 (Nucl. Phys. B406 (1993) 90).
struct DomainWall {
  int ls;
  double height;  // M5
  double mass;
};
Vector domain_wall(const Background&, const Vector& psi, const DomainWall&, bool dagger = false);
// Returns every s with the hop alone.
Vector domain_wall_hop(const Background&, const Vector& psi, int ls, bool dagger = false);
// Returns the part within a site alone: all but the hop.
Vector domain_wall_diagonal(const Vector& psi, const DomainWall&, bool dagger = false);
// Returns the matrix [row][column] of domain_wall(), from matrix elements and not by applying it.
Vector domain_wall_matrix(const Background&, const DomainWall&);
Vector apply_matrix(const Vector& matrix, const Vector& psi);
// gamma5, and for five dimensions s -> Ls-1-s too.
Vector gamma5(const Vector& psi);
Vector gamma5_reflected(const Vector& psi, int ls);

// exp(i p x) at every site, times a constant spinor.
Vector plane_wave(const Extents&, const Momentum&, const std::array<Complex, 12>& spinor);
// The Wilson operator at momentum p on unit links: m + sum (1 - cos p) + i gamma sin p.
Gamma wilson_at(const Momentum&, double mass);
Vector unit_gauge(const Extents&);

// U'_mu(x) = g(x) U_mu(x) g^+(x+mu), psi'(x) = g(x) psi(x); `transformation` is [site][row][col].
Vector transform_gauge(const Extents&, const Vector& gauge, const Vector& transformation);
Vector transform_spinor(const Vector& psi, const Vector& transformation, int ls = 1);

Complex dot(const Vector&, const Vector&);  // conjugate of the first
double norm2(const Vector&);
// sqrt(|a - b|^2 / |b|^2)
double distance(const Vector& a, const Vector& b);

}  // namespace ropewalk::reference
