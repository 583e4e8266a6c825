// Known fields; see fields.hpp.
#include "itt/fields.hpp"

#include <algorithm>
#include <cmath>
#include <limits>

#include "ropewalk/lattice/random.hpp"

namespace ropewalk::bench {
namespace {

using lattice::Extents;
using Complex = std::complex<double>;

constexpr std::uint64_t seed = 20180131;
constexpr std::uint32_t link_stream = 101;
constexpr int colours = 3;

std::uint64_t place(const Extents& global, const Extents& site) {
  return lattice::site_index(global, site);
}

Extents moved(const Extents& global, Extents site, int mu, int by) {
  const auto d = static_cast<std::size_t>(mu);
  site[d] = (site[d] + by + global[d]) % global[d];
  return site;
}

// Returns a number in (-1, 1) of 24 bits, so that a float holds it exactly, too.
double number(std::uint64_t key) {
  key ^= key >> 31;
  key *= 0x9e3779b97f4a7c15ULL;
  key ^= key >> 29;
  key *= 0xbf58476d1ce4e5b9ULL;
  return static_cast<double>(static_cast<std::int64_t>(key >> 40) - (1 << 23)) / (1 << 23);
}

double known_number(std::uint64_t site, int s, int component) {
  return number((site * 256 + static_cast<std::uint64_t>(s)) * 32 +
                static_cast<std::uint64_t>(component) + 1);
}

// In the DeGrand-Rossi basis, each row of gamma_mu has one element: its column and factor.
struct Row {
  int column;
  Complex factor;
};
const Row& gamma(int mu, int row) {
  static const Complex i(0, 1);
  static const Row rows[4][4] = {{{3, i}, {2, i}, {1, -i}, {0, -i}},
                                 {{3, -1.0}, {2, 1.0}, {1, 1.0}, {0, -1.0}},
                                 {{2, i}, {3, -i}, {0, -i}, {1, i}},
                                 {{2, 1.0}, {3, 1.0}, {0, 1.0}, {1, 1.0}}};
  return rows[mu][row];
}

Spinor times(const lattice::Su3& u, const Spinor& psi) {
  Spinor out{};
  for (std::size_t spin = 0; spin < 4; ++spin) {
    for (std::size_t row = 0; row < colours; ++row) {
      for (std::size_t column = 0; column < colours; ++column) {
        out[spin * colours + row] += u[row * colours + column] * psi[spin * colours + column];
      }
    }
  }
  return out;
}

// sum += -1/2 (1 + sign gamma_mu) leg
void add_projected(Spinor& sum, const Spinor& leg, int mu, double sign) {
  for (int spin = 0; spin < 4; ++spin) {
    const Row& row = gamma(mu, spin);
    for (std::size_t colour = 0; colour < colours; ++colour) {
      const auto at = static_cast<std::size_t>(spin) * colours + colour;
      const auto from = static_cast<std::size_t>(row.column) * colours + colour;
      sum[at] -= 0.5 * (leg[at] + sign * row.factor * leg[from]);
    }
  }
}

// Lists the corners of the box and a few sites further in: all places where different faces meet.
std::vector<Extents> checked_sites(const Extents& local) {
  std::vector<Extents> sites;
  for (int corner = 0; corner < 16; ++corner) {
    Extents site{};
    for (std::size_t d = 0; d < 4; ++d) site[d] = (corner >> d & 1) != 0 ? local[d] - 1 : 0;
    sites.push_back(site);
  }
  for (int k = 1; k <= 16; ++k) {
    Extents site{};
    for (std::size_t d = 0; d < 4; ++d) site[d] = (k * (3 + 2 * static_cast<int>(d))) % local[d];
    sites.push_back(site);
  }
  return sites;
}

Extents plus(Extents a, const Extents& b) {
  for (std::size_t d = 0; d < 4; ++d) a[d] += b[d];
  return a;
}

// Calls visit(s, first number) for the s-slices of one site: numbers of [component][lane].
template <class Field, class Visit>
void slices(Field& field, const Extents& local_site, const Visit& visit) {
  const lattice::Layout& layout = field.layout();
  const auto place = layout.place(local_site);
  const bool fifth = layout.vectors() == lattice::Vectors::fifth;
  for (int s = 0; s < layout.fifth_extent(); ++s) {
    const int inner = fifth ? s % layout.inner() : s;
    const int lane = fifth ? s / layout.inner() : place.lane;
    visit(s, field.at(place.vector, inner) + lane);
  }
}

template <class Visit>
void each_site(const Extents& local, const Visit& visit) {
  for (int t = 0; t < local[3]; ++t) {
    for (int z = 0; z < local[2]; ++z) {
      for (int y = 0; y < local[1]; ++y) {
        for (int x = 0; x < local[0]; ++x) visit(Extents{x, y, z, t});
      }
    }
  }
}

// Even sites have an even sum of global coordinates; origins may be odd.
bool has(lattice::Sites sites, const Extents& global_site) {
  const int sum = global_site[0] + global_site[1] + global_site[2] + global_site[3];
  if (sites == lattice::Sites::all) return true;
  return (sum % 2 == 0) == (sites == lattice::Sites::even);
}

}  // namespace

lattice::Su3 known_link(const Extents& global, const Extents& site, int mu) {
  lattice::SiteRandom random(seed, place(global, site) * 4 + static_cast<std::uint64_t>(mu),
                             link_stream);
  lattice::Su3 out{};
  for (std::size_t k = 0; k < 6; ++k) {
    const double real = random.uniform() - 0.5;
    out[k] = {real, random.uniform() - 0.5};
  }
  lattice::reunitarise(out);
  return out;
}

Spinor known_spinor(const Extents& global, const Extents& site, int s) {
  Spinor out{};
  const std::uint64_t index = place(global, site);
  for (int c = 0; c < 12; ++c) {
    out[static_cast<std::size_t>(c)] = {known_number(index, s, 2 * c),
                                        known_number(index, s, 2 * c + 1)};
  }
  return out;
}

Spinor known_hop(const Extents& global, const Extents& site, int s) {
  Spinor sum{};
  for (int mu = 0; mu < 4; ++mu) {
    const Extents up = moved(global, site, mu, 1);
    const Extents down = moved(global, site, mu, -1);
    add_projected(sum, times(known_link(global, site, mu), known_spinor(global, up, s)), mu, -1);
    add_projected(
        sum, times(lattice::adjoint(known_link(global, down, mu)), known_spinor(global, down, s)),
        mu, 1);
  }
  return sum;
}

template <class Real>
lattice::GaugeField<Real> known_gauge(const lattice::Lattice& lattice) {
  lattice::GaugeField<Real> out(lattice);
  each_site(lattice.local(), [&](const Extents& x) {
    const std::size_t site = lattice::site_index(lattice.local(), x);
    for (int mu = 0; mu < 4; ++mu) {
      const lattice::Su3 u = known_link(lattice.global(), plus(x, lattice.origin()), mu);
      std::copy(u.begin(), u.end(), out.link(site, mu));
    }
  });
  return out;
}

template <class Real>
void fill_known(lattice::SpinorField<Real>& field) {
  const lattice::Lattice& lattice = field.layout().lattice();
  const int lanes = field.layout().lanes();
  each_site(lattice.local(), [&](const Extents& x) {
    const Extents at = plus(x, lattice.origin());
    if (!has(field.sites(), at)) return;
    const std::uint64_t index = place(lattice.global(), at);
    slices(field, x, [&](int s, Real* to) {
      for (int c = 0; c < 24; ++c, to += lanes) *to = static_cast<Real>(known_number(index, s, c));
    });
  });
}

double larger_error(double a, double b) {
  if (std::isnan(a) || std::isnan(b)) return std::numeric_limits<double>::infinity();
  return std::max(a, b);
}

template <class Real>
double hop_error(const lattice::SpinorField<Real>& out) {
  const lattice::Lattice& lattice = out.layout().lattice();
  const int lanes = out.layout().lanes();
  double error = 0;
  double largest = 0;
  for (const Extents& x : checked_sites(lattice.local())) {
    const Extents at = plus(x, lattice.origin());
    if (!has(out.sites(), at)) continue;
    slices(out, x, [&](int s, const Real* from) {
      if (s % 5 != 0 && s != out.layout().fifth_extent() - 1) return;
      const Spinor right = known_hop(lattice.global(), at, s);
      for (std::size_t c = 0; c < 12; ++c) {
        const Complex found(from[2 * c * static_cast<std::size_t>(lanes)],
                            from[(2 * c + 1) * static_cast<std::size_t>(lanes)]);
        error = larger_error(error, std::abs(found - right[c]));
        largest = std::max(largest, std::abs(right[c]));
      }
    });
  }
  return largest > 0 ? error / largest : 1;
}

template lattice::GaugeField<float> known_gauge(const lattice::Lattice&);
template lattice::GaugeField<double> known_gauge(const lattice::Lattice&);
template void fill_known(lattice::SpinorField<float>&);
template void fill_known(lattice::SpinorField<double>&);
template double hop_error(const lattice::SpinorField<float>&);
template double hop_error(const lattice::SpinorField<double>&);

}  // namespace ropewalk::bench
