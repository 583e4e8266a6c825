// The clover term of one site: two Hermitian 6 x 6 matrices, in double precision.
#pragma once

#include <array>
#include <complex>

#include "site_matrices.hpp"

namespace ropewalk::lattice {

using Block = std::array<std::complex<double>, 36>;  // row by row: spin, then colour

// 4 + mass + csw (i/2) sum sigma F of the upper two spins (gamma5 = 1) and of the lower.
std::array<Block, 2> clover_blocks(const SiteMatrices& links, const Extents& site, double mass,
                                   double csw);

// Puts the inverse in place of the matrix; returns log |det|, or -infinity where there is none.
double invert(Block&);

}  // namespace ropewalk::lattice
