// This is the clover term of the reference.
#include <algorithm>
#include <cmath>

#include "lattice/reference.hpp"

namespace ropewalk::reference {
namespace {

constexpr std::size_t n12 = spinor_numbers;
constexpr std::size_t term_numbers = n12 * n12;

// The link from x to its neighbour in direction `way`: 1 to 4 for +x to +t, negative backwards.
Matrix transporter(const Extents& extents, const Vector& gauge, const Site& x, int way) {
  const int mu = std::abs(way) - 1;
  if (way > 0) return link(extents, gauge, x, mu);
  Site below = x;
  --below[static_cast<std::size_t>(mu)];
  return adjoint(link(extents, gauge, below, mu));
}

// The product of links along a path that begins at x.
Matrix path(const Extents& extents, const Vector& gauge, Site x, const std::array<int, 4>& ways) {
  Matrix out{{{1, 0, 0}, {0, 1, 0}, {0, 0, 1}}};
  for (const int way : ways) {
    out = multiply(out, transporter(extents, gauge, x, way));
    x[static_cast<std::size_t>(std::abs(way) - 1)] += way > 0 ? 1 : -1;
  }
  return out;
}

void add_plane(Complex* term, const Matrix& f, const Gamma& spin, Complex factor) {
  for (std::size_t row = 0; row < n12; ++row) {
    for (std::size_t column = 0; column < n12; ++column) {
      term[row * n12 + column] += factor * spin[row / 3][column / 3] * f[row % 3][column % 3];
    }
  }
}

// This is Gauss-Jordan elimination with the largest pivot of each column.
void invert(Complex* a) {
  Vector inverse(term_numbers);
  for (std::size_t k = 0; k < n12; ++k) inverse[k * n12 + k] = 1;
  for (std::size_t k = 0; k < n12; ++k) {
    std::size_t pivot = k;
    for (std::size_t r = k; r < n12; ++r) {
      if (std::abs(a[r * n12 + k]) > std::abs(a[pivot * n12 + k])) pivot = r;
    }
    for (std::size_t c = 0; c < n12; ++c) {
      std::swap(a[k * n12 + c], a[pivot * n12 + c]);
      std::swap(inverse[k * n12 + c], inverse[pivot * n12 + c]);
    }
    const Complex scale = 1.0 / a[k * n12 + k];
    for (std::size_t c = 0; c < n12; ++c) {
      a[k * n12 + c] *= scale;
      inverse[k * n12 + c] *= scale;
    }
    for (std::size_t r = 0; r < n12; ++r) {
      if (r == k) continue;
      const Complex factor = a[r * n12 + k];
      for (std::size_t c = 0; c < n12; ++c) {
        a[r * n12 + c] -= factor * a[k * n12 + c];
        inverse[r * n12 + c] -= factor * inverse[k * n12 + c];
      }
    }
  }
  std::copy(inverse.begin(), inverse.end(), a);
}

}  // namespace

Matrix field_strength(const Extents& extents, const Vector& gauge, const Site& x, int mu, int nu) {
  const int m = mu + 1;
  const int n = nu + 1;
  const std::array<std::array<int, 4>, 4> leaves{
      {{m, n, -m, -n}, {n, -m, -n, m}, {-m, -n, m, n}, {-n, m, n, -m}}};
  Matrix out{};
  for (const auto& leaf : leaves) {
    const Matrix q = path(extents, gauge, x, leaf);
    for (std::size_t r = 0; r < 3; ++r) {
      for (std::size_t c = 0; c < 3; ++c) out[r][c] += (q[r][c] - std::conj(q[c][r])) / 8.0;
    }
  }
  return out;
}

Vector clover_term(const Extents& extents, const Vector& gauge, double mass, double csw) {
  Vector out(volume(extents) * term_numbers);
  for (std::size_t n = 0; n < volume(extents); ++n) {
    Complex* term = &out[n * term_numbers];
    for (std::size_t k = 0; k < n12; ++k) term[k * n12 + k] = 4.0 + mass;
    for (int mu = 0; mu < 4; ++mu) {
      for (int nu = mu + 1; nu < 4; ++nu) {
        add_plane(term, field_strength(extents, gauge, site(extents, n), mu, nu), sigma(mu, nu),
                  csw * Complex{0, 0.5});
      }
    }
  }
  return out;
}

Vector apply_term(const Vector& term, const Vector& psi) {
  Vector out(psi.size());
  for (std::size_t k = 0; k < psi.size(); ++k) {
    const std::size_t n = k / n12;
    for (std::size_t c = 0; c < n12; ++c) {
      out[k] += term[n * term_numbers + (k % n12) * n12 + c] * psi[n * n12 + c];
    }
  }
  return out;
}

Vector invert_term(const Vector& term) {
  Vector out = term;
  for (std::size_t n = 0; n < out.size() / term_numbers; ++n) invert(&out[n * term_numbers]);
  return out;
}

Vector clover(const Background& field, const Vector& psi, double mass, double csw, bool dagger) {
  const Vector term = clover_term(field.extents, field.gauge, mass, csw);
  const Vector local = apply_term(term, psi);  // Hermitian: the same for the dagger
  Vector out = hop(field, psi, dagger);
  for (std::size_t k = 0; k < out.size(); ++k) out[k] += local[k];
  return out;
}

}  // namespace ropewalk::reference
