// What the proofs are made with.
#pragma once

#include <complex>
#include <cstdint>
#include <stdexcept>
#include <string>

#include "lattice/proofs.hpp"

namespace ropewalk::lattice::test {

inline constexpr std::uint64_t gauge_seed = 21;  // of Whole
inline constexpr std::uint64_t spinor_seed = 22;

inline Numbers add(Numbers a, double factor, const Numbers& b) {
  for (std::size_t k = 0; k < a.size(); ++k) a[k] += factor * b[k];
  return a;
}

template <class Real>
GaugeField<Real> as(const GaugeField<double>& gauge) {
  GaugeField<Real> out(gauge.lattice());
  out.import_from(gauge.data());
  return out;
}

inline Numbers only(int parity, const Lattice& lattice, const Numbers& plain) {
  const std::size_t each = plain.size() / lattice.local_sites();
  Numbers out(plain.size());
  for (std::size_t k = 0; k < plain.size(); ++k) {
    Extents x = reference::site(lattice.local(), k / each);
    for (std::size_t d = 0; d < dimensions; ++d) x[d] += lattice.origin()[d];
    if (reference::parity(x) == parity) out[k] = plain[k];
  }
  return out;
}

inline std::complex<double> dot(const Lattice& lattice, const Numbers& a, const Numbers& b) {
  const std::complex<double> own = reference::dot(a, b);
  double sums[2] = {own.real(), own.imag()};
  lattice.sum(sums, 2);
  return {sums[0], sums[1]};
}

inline std::string where(const Lattice& lattice, const How& how, const char* what) {
  return std::string(what) + " on " + text(lattice.global()) + " over " +
         text(lattice.rank_grid()) + ", rank " + std::to_string(lattice.rank()) + ", " + how.text();
}

inline void require_equal(std::complex<double> a, std::complex<double> b, double tolerance,
                          double scale, const std::string& what) {
  if (!(std::abs(a - b) <= tolerance * scale)) throw std::runtime_error(what + ": sums differ");
}

}  // namespace ropewalk::lattice::test
