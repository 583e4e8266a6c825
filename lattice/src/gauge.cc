// This file makes gauge configurations and random fields, and computes the two numbers that tell
// configurations apart.
#include "ropewalk/lattice/gauge.hpp"

#include <algorithm>
#include <cmath>

#include "agree.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/lattice/random.hpp"
#include "site_matrices.hpp"
#include "tables.hpp"

namespace ropewalk::lattice {
namespace {

// These are the streams of the random numbers, so that fields of one seed are independent.
constexpr std::uint32_t hot_stream = 1;
constexpr std::uint32_t tepid_stream = 2;
constexpr std::uint32_t transformation_stream = 3;
constexpr std::uint32_t spinor_stream = 4;

constexpr int spinor_numbers = 12;

std::uint64_t global_index(const Lattice& lattice, Extents x) {
  for (std::size_t d = 0; d < 4; ++d) x[d] += lattice.origin()[d];
  return site_index(lattice.global(), x);
}

Su3 load(const std::complex<double>* plain) {
  Su3 out{};
  std::copy(plain, plain + out.size(), out.begin());
  return out;
}

// Calls draw(random) for every link.
template <class Draw>
GaugeField<double> draw_gauge(const Lattice& lattice, std::uint64_t seed, std::uint32_t stream,
                              Draw draw) {
  GaugeField<double> out(lattice);
  for_each_site(lattice.local(), [&](const Extents& x, std::size_t site) {
    SiteRandom random(seed, global_index(lattice, x), stream);
    for (int mu = 0; mu < dimensions; ++mu) {
      const Su3 matrix = draw(random);
      std::copy(matrix.begin(), matrix.end(), out.link(site, mu));
    }
  });
  return out;
}

// Rows of normal numbers have no preferred direction, and Gram-Schmidt keeps it so: Haar's measure.
Su3 haar(SiteRandom& random) {
  Su3 out{};
  for (std::size_t k = 0; k < 6; ++k) {
    const double real = random.normal();
    out[k] = {real, random.normal()};
  }
  reunitarise(out);
  return out;
}

// i width sum_a c_a lambda_a / 2 with c_a normal.
Su3 random_algebra(SiteRandom& random, double width) {
  std::array<double, 8> c{};
  for (double& number : c) number = 0.5 * width * random.normal();
  const double eighth = c[7] / std::sqrt(3.0);
  const auto off = [](double real, double imaginary) {  // i (real - i imaginary)
    return std::complex<double>{imaginary, real};
  };
  Su3 out{};
  out[0] = {0, c[2] + eighth};
  out[4] = {0, -c[2] + eighth};
  out[8] = {0, -2 * eighth};
  out[1] = off(c[0], c[1]);
  out[3] = off(c[0], -c[1]);
  out[2] = off(c[3], c[4]);
  out[6] = off(c[3], -c[4]);
  out[5] = off(c[5], c[6]);
  out[7] = off(c[5], -c[6]);
  return out;
}

// The mean over all sites of what this rank has summed.
double mean(const Lattice& lattice, double sum, int terms_a_site) {
  lattice.sum(&sum, 1);
  return sum / (terms_a_site * static_cast<double>(lattice.global_sites()));
}

void check_size(const char* what, std::size_t found, std::size_t expected) {
  if (found == expected) return;
  throw Error(ErrorCode::argument, std::string(what) + ": found " + std::to_string(found) +
                                       " numbers, expected " + std::to_string(expected) +
                                       "; pass those of all sites of this rank");
}

}  // namespace

GaugeField<double> random_gauge(const Lattice& lattice, std::uint64_t seed) {
  return draw_gauge(lattice, seed, hot_stream, haar);
}

GaugeField<double> tepid_gauge(const Lattice& lattice, std::uint64_t seed, double width) {
  return draw_gauge(lattice, seed, tepid_stream, [width](SiteRandom& random) {
    return exponential(random_algebra(random, width));
  });
}

Numbers random_transformation(const Lattice& lattice, std::uint64_t seed) {
  Numbers out;
  for_each_site(lattice.local(), [&](const Extents& x, std::size_t) {
    SiteRandom random(seed, global_index(lattice, x), transformation_stream);
    const Su3 matrix = haar(random);
    out.insert(out.end(), matrix.begin(), matrix.end());
  });
  return out;
}

Numbers random_spinor(const Lattice& lattice, std::uint64_t seed, int ls) {
  if (ls < 1) {
    throw Error(ErrorCode::argument, "ls: found " + std::to_string(ls) +
                                         ", expected at least 1; 1 is a four-dimensional field");
  }
  Numbers out;
  for_each_site(lattice.local(), [&](const Extents& x, std::size_t) {
    SiteRandom random(seed, global_index(lattice, x), spinor_stream);
    for (int k = 0; k < spinor_numbers * ls; ++k) {
      const double real = random.normal();
      out.emplace_back(real, random.normal());
    }
  });
  return out;
}

double plaquette(const GaugeField<double>& gauge) {
  const SiteMatrices links = made_collectively(
      gauge.lattice(), [&] { return SiteMatrices(gauge.lattice(), gauge.data(), dimensions); });
  double sum = 0;
  for_each_site(links.local(), [&](const Extents& x, std::size_t) {
    for (std::size_t mu = 0; mu < dimensions; ++mu) {
      for (std::size_t nu = mu + 1; nu < dimensions; ++nu) {
        const Su3 there = multiply(links.at(x, mu), links.at(shifted(x, mu, 1), nu));
        const Su3 other = multiply(links.at(x, nu), links.at(shifted(x, nu, 1), mu));
        sum += trace(multiply(there, adjoint(other))).real() / 3;
      }
    }
  });
  return mean(gauge.lattice(), sum, 6);
}

double link_trace(const GaugeField<double>& gauge) {
  double sum = 0;
  for (std::size_t first = 0; first < gauge.size(); first += link_complex) {
    sum += trace(load(gauge.data() + first)).real() / 3;
  }
  return mean(gauge.lattice(), sum, dimensions);
}

GaugeField<double> transform_gauge(const GaugeField<double>& gauge, const Numbers& transformation) {
  const std::size_t expected = gauge.lattice().local_sites() * link_complex;
  collectively(gauge.lattice(),
               [&] { check_size("transformation", transformation.size(), expected); });
  const SiteMatrices g = made_collectively(
      gauge.lattice(), [&] { return SiteMatrices(gauge.lattice(), transformation.data(), 1); });
  GaugeField<double> out =
      made_collectively(gauge.lattice(), [&] { return GaugeField<double>(gauge.lattice()); });
  for_each_site(g.local(), [&](const Extents& x, std::size_t site) {
    for (int mu = 0; mu < dimensions; ++mu) {
      const Extents above = shifted(x, static_cast<std::size_t>(mu), 1);
      const Su3 u =
          multiply(multiply(g.at(x, 0), load(gauge.link(site, mu))), adjoint(g.at(above, 0)));
      std::copy(u.begin(), u.end(), out.link(site, mu));
    }
  });
  return out;
}

Numbers transform_spinor(const Numbers& psi, const Numbers& transformation) {
  const std::size_t sites = transformation.size() / link_complex;
  check_size("transformation", transformation.size(),
             std::max<std::size_t>(1, sites) * link_complex);
  const std::size_t spinor = static_cast<std::size_t>(spinor_numbers) * sites;
  check_size("psi", psi.size(), std::max(spinor, psi.size() / spinor * spinor));
  Numbers out(psi.size());
  for (std::size_t k = 0; k < psi.size(); ++k) {
    const std::complex<double>* row =
        &transformation[k / (psi.size() / sites) * link_complex + k % 3 * 3];
    const std::complex<double>* colours = &psi[k - k % 3];
    for (std::size_t c = 0; c < 3; ++c) out[k] += row[c] * colours[c];
  }
  return out;
}

void reunitarise(GaugeField<double>& gauge) {
  for (std::size_t first = 0; first < gauge.size(); first += link_complex) {
    Su3 u = load(gauge.data() + first);
    reunitarise(u);
    std::copy(u.begin(), u.end(), gauge.data() + first);
  }
}

}  // namespace ropewalk::lattice
