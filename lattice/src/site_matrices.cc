#include "site_matrices.hpp"

#include <algorithm>

#include "agree.hpp"
#include "ropewalk/halo.hpp"

namespace ropewalk::lattice {

SiteMatrices::SiteMatrices(const Lattice& lattice, const std::complex<double>* plain,
                           std::size_t each)
    : each_(each), local_(lattice.local()) {
  std::size_t sites = 1;
  for (std::size_t d = 0; d < 4; ++d) {
    ghost_[d] = lattice.rank_grid()[d] > 1 ? 1 : 0;
    sites *= static_cast<std::size_t>(local_[d] + 2 * ghost_[d]);
  }
  matrices_.resize(sites * each);
  for_each_site(local_, [&](const Extents& x, std::size_t site) {
    for (std::size_t n = 0; n < each; ++n) {
      const auto* first = plain + (site * each + n) * 9;
      std::copy(first, first + 9, matrices_[index(x) * each + n].begin());
    }
  });
  if (lattice.size() > 1) exchange(lattice);
}

const Su3& SiteMatrices::at(const Extents& x, std::size_t which) const {
  return matrices_[index(x) * each_ + which];
}

std::size_t SiteMatrices::index(const Extents& x) const {
  std::size_t out = 0;
  for (std::size_t d = 0; d < 4; ++d) {
    const int position = ghost_[d] > 0 ? x[d] + 1 : (x[d] + local_[d]) % local_[d];
    out = out * static_cast<std::size_t>(local_[d] + 2 * ghost_[d]) +
          static_cast<std::size_t>(position);
  }
  return out;
}

void SiteMatrices::exchange(const Lattice& lattice) {
  Field field;
  field.data = matrices_.data();
  field.element_bytes = each_ * sizeof(Su3);
  for (std::size_t d = 0; d < 4; ++d) {
    field.interior.push_back(static_cast<std::size_t>(local_[d]));
    field.ghost.push_back(static_cast<std::size_t>(ghost_[d]));
  }
  const std::vector<Field> fields{field};
  EndpointSet& endpoints = lattice.endpoints();
  meet(lattice);
  Halo halo(lattice.grid(), endpoints, fields, {Strategy::concurrent, Corners::yes});
  halo.exchange();
}

}  // namespace ropewalk::lattice
