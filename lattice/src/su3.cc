// Matrices of SU(3); set-up only, so written to be read. Products of complex numbers are written
// out: the operator of std::complex looks for infinities in each.
#include "ropewalk/lattice/su3.hpp"

#include <algorithm>
#include <cmath>
#include <cstddef>

namespace ropewalk::lattice {
namespace {

using Complex = std::complex<double>;

Complex times(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}

void normalise(Complex* row) {
  const double length = std::sqrt(std::norm(row[0]) + std::norm(row[1]) + std::norm(row[2]));
  for (int k = 0; k < 3; ++k) row[k] /= length;
}

}  // namespace

Su3 su3_identity() { return {1, 0, 0, 0, 1, 0, 0, 0, 1}; }

Su3 multiply(const Su3& a, const Su3& b) {
  Su3 out{};
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t k = 0; k < 3; ++k) out[3 * r + c] += times(a[3 * r + k], b[3 * k + c]);
    }
  }
  return out;
}

Su3 adjoint(const Su3& u) {
  Su3 out{};
  for (std::size_t k = 0; k < 9; ++k) out[k] = std::conj(u[k % 3 * 3 + k / 3]);
  return out;
}

Complex trace(const Su3& u) { return u[0] + u[4] + u[8]; }

Complex determinant(const Su3& u) {
  const auto minor = [&](std::size_t a, std::size_t b) {
    return times(u[3 + a], u[6 + b]) - times(u[3 + b], u[6 + a]);
  };
  return times(u[0], minor(1, 2)) + times(u[1], minor(2, 0)) + times(u[2], minor(0, 1));
}

void complete_third_row(Su3& u) {
  for (std::size_t k = 0; k < 3; ++k) {
    const std::size_t a = (k + 1) % 3;
    const std::size_t b = (k + 2) % 3;
    u[6 + k] = std::conj(times(u[a], u[3 + b]) - times(u[b], u[3 + a]));
  }
}

void reunitarise(Su3& u) {
  normalise(&u[0]);
  Complex overlap = 0;
  for (std::size_t k = 0; k < 3; ++k) overlap += times(std::conj(u[k]), u[3 + k]);
  for (std::size_t k = 0; k < 3; ++k) u[3 + k] -= times(overlap, u[k]);
  normalise(&u[3]);
  complete_third_row(u);
}

double unitarity_error(const Su3& u) {
  const Su3 product = multiply(u, adjoint(u));
  const Su3 one = su3_identity();
  double out = std::abs(determinant(u) - 1.0);
  for (std::size_t k = 0; k < 9; ++k) out = std::max(out, std::abs(product[k] - one[k]));
  return out;
}

// This is scaling and squaring: it sums the series of exp(A / 2^halvings), and squares the sum as
// often.
Su3 exponential(const Su3& anti_hermitian) {
  constexpr int terms = 14;  // 1/16^14 / 14! is far below rounding
  double largest = 0;
  for (const Complex& element : anti_hermitian) largest = std::max(largest, std::abs(element));
  int halvings = 0;
  for (; largest > 1.0 / 16; largest /= 2) ++halvings;
  Su3 out = su3_identity();
  for (int n = terms; n > 0; --n) {  // Horner: 1 + A/1 (1 + A/2 (1 + ...))
    Su3 next = multiply(anti_hermitian, out);
    for (Complex& element : next) element *= std::ldexp(1.0, -halvings) / n;
    for (std::size_t k = 0; k < 9; k += 4) next[k] += 1.0;
    out = next;
  }
  for (int n = 0; n < halvings; ++n) out = multiply(out, out);
  return out;
}

}  // namespace ropewalk::lattice
