// Sites, gamma matrices, links and the Wilson operator of the reference.
#include "lattice/reference.hpp"

#include <cmath>

namespace ropewalk::reference {
namespace {

constexpr Complex i_unit{0, 1};

Gamma make_gamma(int mu) {
  constexpr Complex i = i_unit;
  switch (mu) {
    case 0:
      return {{{0, 0, 0, i}, {0, 0, i, 0}, {0, -i, 0, 0}, {-i, 0, 0, 0}}};
    case 1:
      return {{{0, 0, 0, -1}, {0, 0, 1, 0}, {0, 1, 0, 0}, {-1, 0, 0, 0}}};
    case 2:
      return {{{0, 0, i, 0}, {0, 0, 0, -i}, {-i, 0, 0, 0}, {0, i, 0, 0}}};
    case 3:
      return {{{0, 0, 1, 0}, {0, 0, 0, 1}, {1, 0, 0, 0}, {0, 1, 0, 0}}};
    default:
      return {{{1, 0, 0, 0}, {0, 1, 0, 0}, {0, 0, -1, 0}, {0, 0, 0, -1}}};
  }
}

// Computes out(x) += factor (1 + sign gamma_mu) U psi, for one site's twelve numbers.
void add_leg(Complex* out, const Complex* psi, const Matrix& u, int mu, double sign,
             double factor) {
  for (std::size_t a = 0; a < spins; ++a) {
    for (std::size_t b = 0; b < spins; ++b) {
      const Complex spin = (a == b ? 1.0 : 0.0) + sign * gamma(mu)[a][b];
      for (std::size_t c = 0; c < colours; ++c) {
        for (std::size_t d = 0; d < colours; ++d) {
          out[a * colours + c] += factor * spin * u[c][d] * psi[b * colours + d];
        }
      }
    }
  }
}

Site step(Site x, int mu, int by) {
  x[static_cast<std::size_t>(mu)] += by;
  return x;
}

// Returns the phase of a hop from x by one step in mu.
double phase(const Background& field, const Site& x, int mu, int by) {
  const auto d = static_cast<std::size_t>(mu);
  const int to = x[d] + by;
  return to < 0 || to >= field.extents[d] ? field.boundary[d] : 1.0;
}

}  // namespace

const Gamma& gamma(int mu) {
  static const std::array<Gamma, 5> all{make_gamma(0), make_gamma(1), make_gamma(2), make_gamma(3),
                                        make_gamma(4)};
  return all[static_cast<std::size_t>(mu)];
}

Gamma multiply(const Gamma& a, const Gamma& b) {
  Gamma out{};
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t c = 0; c < 4; ++c) {
      for (std::size_t k = 0; k < 4; ++k) out[r][c] += a[r][k] * b[k][c];
    }
  }
  return out;
}

Gamma sigma(int mu, int nu) {
  const Gamma forward = multiply(gamma(mu), gamma(nu));
  const Gamma backward = multiply(gamma(nu), gamma(mu));
  Gamma out{};
  for (std::size_t r = 0; r < 4; ++r) {
    for (std::size_t c = 0; c < 4; ++c) {
      out[r][c] = 0.5 * i_unit * (forward[r][c] - backward[r][c]);
    }
  }
  return out;
}

std::size_t volume(const Extents& extents) {
  std::size_t out = 1;
  for (const int extent : extents) out *= static_cast<std::size_t>(extent);
  return out;
}

std::size_t index(const Extents& extents, const Site& x) {
  std::size_t out = 0;
  for (std::size_t d = 4; d-- > 0;) {
    const int wrapped = ((x[d] % extents[d]) + extents[d]) % extents[d];
    out = out * static_cast<std::size_t>(extents[d]) + static_cast<std::size_t>(wrapped);
  }
  return out;
}

Site site(const Extents& extents, std::size_t index) {
  Site out{};
  for (std::size_t d = 0; d < 4; ++d) {
    const auto extent = static_cast<std::size_t>(extents[d]);
    out[d] = static_cast<int>(index % extent);
    index /= extent;
  }
  return out;
}

int parity(const Site& x) { return (x[0] + x[1] + x[2] + x[3]) & 1; }

Matrix link(const Extents& extents, const Vector& gauge, const Site& x, int mu) {
  const std::size_t first = (index(extents, x) * 4 + static_cast<std::size_t>(mu)) * link_numbers;
  Matrix out{};
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c) out[r][c] = gauge[first + 3 * r + c];
  }
  return out;
}

Matrix adjoint(const Matrix& m) {
  Matrix out{};
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c) out[r][c] = std::conj(m[c][r]);
  }
  return out;
}

Matrix multiply(const Matrix& a, const Matrix& b) {
  Matrix out{};
  for (std::size_t r = 0; r < 3; ++r) {
    for (std::size_t c = 0; c < 3; ++c) {
      for (std::size_t k = 0; k < 3; ++k) out[r][c] += a[r][k] * b[k][c];
    }
  }
  return out;
}

Vector hop(const Background& field, const Vector& psi, bool dagger) {
  const double sign = dagger ? -1.0 : 1.0;
  Vector out(psi.size());
  for (std::size_t n = 0; n < volume(field.extents); ++n) {
    const Site x = site(field.extents, n);
    for (int mu = 0; mu < 4; ++mu) {
      const Site above = step(x, mu, +1);
      const Site below = step(x, mu, -1);
      add_leg(&out[n * spinor_numbers], &psi[index(field.extents, above) * spinor_numbers],
              link(field.extents, field.gauge, x, mu), mu, -sign, -0.5 * phase(field, x, mu, +1));
      add_leg(&out[n * spinor_numbers], &psi[index(field.extents, below) * spinor_numbers],
              adjoint(link(field.extents, field.gauge, below, mu)), mu, sign,
              -0.5 * phase(field, x, mu, -1));
    }
  }
  return out;
}

Vector wilson(const Background& field, const Vector& psi, double mass, bool dagger) {
  Vector out = hop(field, psi, dagger);
  for (std::size_t k = 0; k < out.size(); ++k) out[k] += (4.0 + mass) * psi[k];
  return out;
}

Vector only(int wanted, const Extents& extents, const Vector& psi, std::size_t numbers_a_site) {
  Vector out(psi.size());
  for (std::size_t k = 0; k < psi.size(); ++k) {
    if (parity(site(extents, k / numbers_a_site)) == wanted) out[k] = psi[k];
  }
  return out;
}

double plaquette(const Extents& extents, const Vector& gauge) {
  double sum = 0;
  for (std::size_t n = 0; n < volume(extents); ++n) {
    const Site x = site(extents, n);
    for (int mu = 0; mu < 4; ++mu) {
      for (int nu = mu + 1; nu < 4; ++nu) {
        const Matrix there =
            multiply(link(extents, gauge, x, mu), link(extents, gauge, step(x, mu, +1), nu));
        const Matrix other =
            multiply(link(extents, gauge, x, nu), link(extents, gauge, step(x, nu, +1), mu));
        const Matrix p = multiply(there, adjoint(other));
        sum += (p[0][0] + p[1][1] + p[2][2]).real() / 3.0;
      }
    }
  }
  return sum / (6.0 * static_cast<double>(volume(extents)));
}

double link_trace(const Extents& extents, const Vector& gauge) {
  double sum = 0;
  for (std::size_t n = 0; n < volume(extents); ++n) {
    for (int mu = 0; mu < 4; ++mu) {
      const Matrix u = link(extents, gauge, site(extents, n), mu);
      sum += (u[0][0] + u[1][1] + u[2][2]).real() / 3.0;
    }
  }
  return sum / (4.0 * static_cast<double>(volume(extents)));
}

Vector gamma5(const Vector& psi) {
  Vector out = psi;
  for (std::size_t k = 0; k < out.size(); ++k) {
    if (k % spinor_numbers >= spinor_numbers / 2) out[k] = -out[k];
  }
  return out;
}

Vector plane_wave(const Extents& extents, const Momentum& p,
                  const std::array<Complex, 12>& spinor) {
  Vector out;
  for (std::size_t n = 0; n < volume(extents); ++n) {
    const Site x = site(extents, n);
    double angle = 0;
    for (std::size_t d = 0; d < 4; ++d) angle += p[d] * x[d];
    for (const Complex& number : spinor) out.push_back(std::polar(1.0, angle) * number);
  }
  return out;
}

Gamma wilson_at(const Momentum& p, double mass) {
  Gamma out{};
  for (std::size_t a = 0; a < 4; ++a) {
    out[a][a] += mass;
    for (std::size_t mu = 0; mu < 4; ++mu) {
      out[a][a] += 1.0 - std::cos(p[mu]);
      for (std::size_t b = 0; b < 4; ++b) {
        out[a][b] += i_unit * gamma(static_cast<int>(mu))[a][b] * std::sin(p[mu]);
      }
    }
  }
  return out;
}

Vector unit_gauge(const Extents& extents) {
  Vector out(volume(extents) * 4 * link_numbers);
  for (std::size_t k = 0; k < out.size(); ++k) out[k] = k % link_numbers % 4 == 0 ? 1.0 : 0.0;
  return out;
}

Vector transform_gauge(const Extents& extents, const Vector& gauge, const Vector& g) {
  const auto at = [&](const Site& x) {
    Matrix out{};
    for (std::size_t k = 0; k < 9; ++k) out[k / 3][k % 3] = g[index(extents, x) * 9 + k];
    return out;
  };
  Vector out;
  for (std::size_t n = 0; n < volume(extents); ++n) {
    const Site x = site(extents, n);
    for (int mu = 0; mu < 4; ++mu) {
      const Matrix u =
          multiply(multiply(at(x), link(extents, gauge, x, mu)), adjoint(at(step(x, mu, +1))));
      for (std::size_t k = 0; k < 9; ++k) out.push_back(u[k / 3][k % 3]);
    }
  }
  return out;
}

Vector transform_spinor(const Vector& psi, const Vector& g, int ls) {
  Vector out(psi.size());
  for (std::size_t k = 0; k < psi.size(); ++k) {
    const std::size_t n = k / (spinor_numbers * static_cast<std::size_t>(ls));
    const std::size_t row = k % 3;
    for (std::size_t c = 0; c < 3; ++c) out[k] += g[n * 9 + row * 3 + c] * psi[k - row + c];
  }
  return out;
}

Complex dot(const Vector& a, const Vector& b) {
  Complex out = 0;
  for (std::size_t k = 0; k < a.size(); ++k) out += std::conj(a[k]) * b[k];
  return out;
}

double norm2(const Vector& a) { return dot(a, a).real(); }

double distance(const Vector& a, const Vector& b) {
  double difference = 0;
  for (std::size_t k = 0; k < b.size(); ++k) difference += std::norm(a.at(k) - b[k]);
  return std::sqrt(difference / norm2(b));
}

}  // namespace ropewalk::reference
