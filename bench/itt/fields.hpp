// Fields whose numbers anybody can work out for any global site, and the hopping term written out
// from them: what the operators' results are checked against, faces from other ranks included.
#pragma once

#include <array>
#include <complex>
#include <cstdint>

#include "ropewalk/lattice/fields.hpp"
#include "ropewalk/lattice/operators.hpp"
#include "ropewalk/lattice/su3.hpp"

namespace ropewalk::bench {

using Spinor = std::array<std::complex<double>, 12>;  // [spin][colour]

lattice::Su3 known_link(const lattice::Extents& global, const lattice::Extents& site, int mu);
Spinor known_spinor(const lattice::Extents& global, const lattice::Extents& site, int s);
// D_h of the known spinor at a site, by gamma matrices in full.
Spinor known_hop(const lattice::Extents& global, const lattice::Extents& site, int s);

template <class Real>
lattice::GaugeField<Real> known_gauge(const lattice::Lattice& lattice);
template <class Real>
void fill_known(lattice::SpinorField<Real>& field);
// The larger of two errors; infinite where one is no number, which would be smaller than any bound.
double larger_error(double a, double b);
// The largest error of `out` relative to the largest number, at corners of the rank's box and some
// sites inside, where `out` has them.
template <class Real>
double hop_error(const lattice::SpinorField<Real>& out);

}  // namespace ropewalk::bench
