#include "clover_blocks.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

namespace ropewalk::lattice {
namespace {

using Complex = std::complex<double>;
constexpr std::size_t n = 6;

// i F = i (Q - Q^+)/8, Hermitian; Q is the sum of the four leaves, counter-clockwise from x.
Su3 hermitian_field(const SiteMatrices& links, const Extents& x, std::size_t mu, std::size_t nu) {
  const Extents back = shifted(x, mu, -1);
  const Extents down = shifted(x, nu, -1);
  const Extents both = shifted(back, nu, -1);
  const auto u = [&](const Extents& at) { return links.at(at, mu); };
  const auto v = [&](const Extents& at) { return links.at(at, nu); };
  const Su3 leaves[4] = {
      multiply(multiply(u(x), v(shifted(x, mu, 1))), adjoint(multiply(v(x), u(shifted(x, nu, 1))))),
      multiply(multiply(v(x), adjoint(u(shifted(back, nu, 1)))),
               multiply(adjoint(v(back)), u(back))),
      multiply(adjoint(multiply(v(both), u(back))), multiply(u(both), v(down))),
      multiply(multiply(adjoint(v(down)), u(down)),
               multiply(v(shifted(down, mu, 1)), adjoint(u(x))))};
  Su3 q{};
  for (const Su3& leaf : leaves) {
    for (std::size_t k = 0; k < q.size(); ++k) q[k] += leaf[k];
  }
  Su3 out{};
  for (std::size_t k = 0; k < q.size(); ++k) {
    out[k] = Complex{0, 0.125} * (q[k] - std::conj(q[k % 3 * 3 + k / 3]));
  }
  return out;
}

// Adds c (sigma_1 h_1 + sigma_2 h_2 + sigma_3 h_3): Pauli matrices times matrices of colour.
void add_pauli(Block& block, const std::array<Su3, 3>& h, double c) {
  constexpr Complex i{0, 1};
  for (std::size_t row = 0; row < 3; ++row) {
    for (std::size_t column = 0; column < 3; ++column) {
      const std::size_t k = 3 * row + column;
      block[row * n + column] += c * h[2][k];
      block[(row + 3) * n + column + 3] -= c * h[2][k];
      block[row * n + column + 3] += c * (h[0][k] - i * h[1][k]);
      block[(row + 3) * n + column] += c * (h[0][k] + i * h[1][k]);
    }
  }
}

Su3 combine(const Su3& a, double sign, const Su3& b) {
  Su3 out{};
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = a[k] + sign * b[k];
  return out;
}

}  // namespace

// In this basis sigma_yz = sigma_1, sigma_xz = sigma_2 and sigma_xy = sigma_3 for both chiralities;
// sigma_xt, sigma_yt and sigma_zt are -sigma_1, sigma_2 and -sigma_3 for the upper one, and the
// opposite for the lower.
std::array<Block, 2> clover_blocks(const SiteMatrices& links, const Extents& x, double mass,
                                   double csw) {
  const auto field = [&](std::size_t mu, std::size_t nu) {
    return hermitian_field(links, x, mu, nu);
  };
  const Su3 yz = field(1, 2);
  const Su3 xz = field(0, 2);
  const Su3 xy = field(0, 1);
  const Su3 xt = field(0, 3);
  const Su3 yt = field(1, 3);
  const Su3 zt = field(2, 3);
  std::array<Block, 2> out{};
  for (const std::size_t lower : {std::size_t{0}, std::size_t{1}}) {
    const double sign = lower == 0 ? -1 : 1;
    for (std::size_t k = 0; k < n; ++k) out[lower][k * n + k] = 4 + mass;
    add_pauli(out[lower], {combine(yz, sign, xt), combine(xz, -sign, yt), combine(xy, sign, zt)},
              csw / 2);
  }
  return out;
}

// This is Gauss-Jordan elimination with the largest pivot of each column.
double invert(Block& a) {
  Block inverse{};
  for (std::size_t k = 0; k < n; ++k) inverse[k * n + k] = 1;
  double log_determinant = 0;
  for (std::size_t k = 0; k < n; ++k) {
    std::size_t pivot = k;
    for (std::size_t row = k + 1; row < n; ++row) {
      if (std::abs(a[row * n + k]) > std::abs(a[pivot * n + k])) pivot = row;
    }
    for (Block* m : {&a, &inverse}) {
      std::swap_ranges(&(*m)[k * n], &(*m)[k * n] + n, &(*m)[pivot * n]);
    }
    const double size = std::abs(a[k * n + k]);
    if (!(size > std::numeric_limits<float>::epsilon())) {
      return -std::numeric_limits<double>::infinity();
    }
    log_determinant += std::log(size);
    const Complex scale = 1.0 / a[k * n + k];
    for (Block* m : {&a, &inverse}) {
      for (std::size_t column = 0; column < n; ++column) (*m)[k * n + column] *= scale;
    }
    for (std::size_t row = 0; row < n; ++row) {
      const Complex factor = a[row * n + k];
      if (row == k || factor == 0.0) continue;
      for (Block* m : {&a, &inverse}) {
        for (std::size_t column = 0; column < n; ++column) {
          (*m)[row * n + column] -= factor * (*m)[k * n + column];
        }
      }
    }
  }
  a = inverse;
  return log_determinant;
}

}  // namespace ropewalk::lattice
