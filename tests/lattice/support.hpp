// What tests of the lattice share: grids of ranks, and a rank's part of an array of the whole.
#pragma once

#include <complex>
#include <string>
#include <vector>

#include "lattice/reference.hpp"
#include "ropewalk/lattice/gauge.hpp"

namespace ropewalk::lattice::test {

// The sites of this rank out of an array of the whole lattice, and their order, as plain arrays.
inline Numbers local_part(const Lattice& lattice, const Numbers& whole) {
  const std::size_t each = whole.size() / lattice.global_sites();
  Numbers out;
  for (std::size_t n = 0; n < lattice.local_sites(); ++n) {
    Extents x = reference::site(lattice.local(), n);
    for (std::size_t d = 0; d < dimensions; ++d) x[d] += lattice.origin()[d];
    const auto first =
        whole.begin() + static_cast<std::ptrdiff_t>(reference::index(lattice.global(), x) * each);
    out.insert(out.end(), first, first + static_cast<std::ptrdiff_t>(each));
  }
  return out;
}

inline Numbers plain(const GaugeField<double>& gauge) {
  return {gauge.data(), gauge.data() + gauge.size()};
}

inline int ranks_of(const Extents& grid) { return grid[0] * grid[1] * grid[2] * grid[3]; }

}  // namespace ropewalk::lattice::test
