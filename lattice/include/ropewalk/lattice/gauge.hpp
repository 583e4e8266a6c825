// Gauge configurations and random fields. Random numbers belong to global sites (random.hpp), so
// every grid of ranks makes the same fields from the same seed.
#pragma once

#include <complex>
#include <cstdint>
#include <vector>

#include "ropewalk/lattice/fields.hpp"

namespace ropewalk::lattice {

// A plain array of the sites of this rank, x fastest.
using Numbers = std::vector<std::complex<double>>;

// "Hot": links independent of each other, uniform in SU(3).
GaugeField<double> random_gauge(const Lattice&, std::uint64_t seed);
// Links exp(i width H), H with normal coefficients of the Gell-Mann matrices over 2: near unit
// links for small widths, where operators are conditioned as on configurations of simulations.
GaugeField<double> tepid_gauge(const Lattice&, std::uint64_t seed, double width);
Numbers random_spinor(const Lattice&, std::uint64_t seed, int ls = 1);  // normal, variance 1
Numbers random_transformation(const Lattice&, std::uint64_t seed);  // [site][row][column], SU(3)

// Collective. Returns the mean over sites and the six planes of Re tr P / 3, which is 1 on unit
// links. All ranks get the same bits; on another grid of ranks it is the same to rounding.
double plaquette(const GaugeField<double>&);
// Collective. Mean over links of Re tr U / 3.
double link_trace(const GaugeField<double>&);
// Collective. U'_mu(x) = g(x) U_mu(x) g^+(x+mu).
GaugeField<double> transform_gauge(const GaugeField<double>&, const Numbers& transformation);
// psi'(x) = g(x) psi(x) at all s; psi is [site][s][spin][colour].
Numbers transform_spinor(const Numbers& psi, const Numbers& transformation);
// Every link to the nearest of SU(3), by Gram-Schmidt.
void reunitarise(GaugeField<double>&);

}  // namespace ropewalk::lattice
