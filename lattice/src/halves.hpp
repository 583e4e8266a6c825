// The even or the odd half of a field as a field of its own, as even-odd solvers need it.
#pragma once

#include <algorithm>

#include "ropewalk/lattice/fields.hpp"

namespace ropewalk::lattice::detail {

// The even sites of a field come first, the odd ones after them.
template <class Real>
SpinorField<Real> half(const SpinorField<Real>& whole, Sites sites) {
  SpinorField<Real> out(whole.layout(), sites);
  std::copy_n(whole.at(whole.layout().first(sites)), out.size(), out.data());
  return out;
}
template <class Real>
void put_half(SpinorField<Real>& whole, const SpinorField<Real>& part) {
  std::copy_n(part.data(), part.size(), whole.at(whole.layout().first(part.sites())));
}

}  // namespace ropewalk::lattice::detail
