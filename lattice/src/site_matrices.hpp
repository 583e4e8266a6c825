// This header has 3 x 3 matrices at the sites of this rank and of the layer around it, for what is
// computed once for each configuration: plaquettes, field strengths, gauge transformations. They
// are not for operators.
#pragma once

#include <array>
#include <cstddef>
#include <vector>

#include "ropewalk/lattice/gauge.hpp"
#include "ropewalk/lattice/su3.hpp"

namespace ropewalk::lattice {

// `each` matrices a site. Dimensions over which ranks are divided have ghosts of width 1, corners
// included; the others wrap around.
class SiteMatrices {
 public:
  // Collective: fills the ghosts.
  SiteMatrices(const Lattice&, const std::complex<double>* plain, std::size_t each);

  // Returns the coordinates from the first site of this rank, -1 to the local extent, both
  // included.
  const Su3& at(const Extents&, std::size_t which) const;
  const Extents& local() const { return local_; }

 private:
  std::size_t index(const Extents&) const;
  void exchange(const Lattice&);

  std::size_t each_;
  Extents local_{};
  Extents ghost_{};
  std::vector<Su3> matrices_;  // x slowest, as the grid of ranks has it
};

// Calls visit(coordinates, site) for each site of this rank, in the order of plain arrays.
template <class Visit>
void for_each_site(const Extents& local, Visit visit) {
  std::size_t site = 0;
  for (int t = 0; t < local[3]; ++t) {
    for (int z = 0; z < local[2]; ++z) {
      for (int y = 0; y < local[1]; ++y) {
        for (int x = 0; x < local[0]; ++x) visit(Extents{x, y, z, t}, site++);
      }
    }
  }
}

inline Extents shifted(Extents x, std::size_t mu, int by) {
  x[mu] += by;
  return x;
}

}  // namespace ropewalk::lattice
