// Compares the clover term with the reference.
#include <cmath>

#include "lattice/proof_tools.hpp"

namespace ropewalk::lattice::test {
namespace {

// Computes log |det| of the reference's 12 x 12 matrices on the sites of one parity, by
// elimination.
double log_determinant(const Whole& whole, int parity) {
  double out = 0;
  for (std::size_t site = 0; site < reference::volume(whole.extents); ++site) {
    if (reference::parity(reference::site(whole.extents, site)) != parity) continue;
    Numbers a(whole.term.begin() + static_cast<std::ptrdiff_t>(site * 144),
              whole.term.begin() + static_cast<std::ptrdiff_t>(site * 144 + 144));
    for (std::size_t k = 0; k < 12; ++k) {
      std::size_t pivot = k;
      for (std::size_t row = k; row < 12; ++row) {
        if (std::abs(a[row * 12 + k]) > std::abs(a[pivot * 12 + k])) pivot = row;
      }
      for (std::size_t c = 0; c < 12; ++c) std::swap(a[k * 12 + c], a[pivot * 12 + c]);
      out += std::log(std::abs(a[k * 12 + k]));
      for (std::size_t row = k + 1; row < 12; ++row) {
        const std::complex<double> factor = a[row * 12 + k] / a[k * 12 + k];
        for (std::size_t c = k; c < 12; ++c) a[row * 12 + c] -= factor * a[k * 12 + c];
      }
    }
  }
  return out;
}

// Compares M_oo - M_oe M_ee^-1 M_eo, and the part M_ee^-1 M_eo of it that CCS-QCD calls MULT.
template <class Real>
void prove_clover_halves(CloverOperator<Real>& op, const Whole& whole, bool dagger,
                         const std::string& at) {
  const Lattice& lattice = op.lattice();
  const Numbers odd = reference::only(1, whole.extents, whole.psi, 12);
  const Numbers mult = reference::apply_term(reference::invert_term(whole.term),
                                             reference::hop(whole.field, odd, dagger));
  const Numbers schur =
      add(reference::apply_term(whole.term, odd), -1, reference::hop(whole.field, mult, dagger));
  const SpinorField<Real> in = imported(op.field(Sites::odd), local_part(lattice, whole.psi));
  SpinorField<Real> even = op.field(Sites::even);
  op.mult(even, in, dagger);
  require_close(exported(even), local_part(lattice, mult), 10 * rounding<Real>(), "mult, " + at);
  SpinorField<Real> out = op.field(Sites::odd);
  op.apply_schur(out, in, dagger);
  require_close(exported(out), local_part(lattice, schur), 10 * rounding<Real>(),
                "Schur's complement, " + at);
}

}  // namespace

template <class Real>
void prove_clover(const Whole& whole, const Lattice& lattice, const How& how) {
  const GaugeField<Real> gauge = as<Real>(random_gauge(lattice, gauge_seed));
  CloverOperator<Real> op(gauge, Whole::mass, Whole::csw, how.options);
  const SpinorField<Real> in = imported(op.field(), local_part(lattice, whole.psi));
  SpinorField<Real> out = op.field();
  for (const bool dagger : {false, true}) {
    const std::string at = where(lattice, how, dagger ? "dagger of clover" : "clover");
    op.apply(out, in, dagger);
    require_close(exported(out), local_part(lattice, whole.results[dagger ? 1 : 0].clover),
                  rounding<Real>(), at);
    if (op.layout().checkered()) prove_clover_halves(op, whole, dagger, at);
  }
  const std::string at = where(lattice, how, "clover term");
  op.diagonal_part(out, in);
  require_close(exported(out), local_part(lattice, reference::apply_term(whole.term, whole.psi)),
                rounding<Real>(), at);
  op.diagonal_inverse(out, out);
  require_close(exported(out), local_part(lattice, whole.psi), 10 * rounding<Real>(),
                "inverse, " + at);
  for (const int parity : {0, 1}) {
    const double expected = log_determinant(whole, parity);
    require_equal(op.log_determinant(parity == 0 ? Sites::even : Sites::odd), expected,
                  sizeof(Real) == 4 ? 1e-6 : 1e-12, std::abs(expected), "determinant, " + at);
  }
  // csw = 0 is Wilson's operator.
  CloverOperator<Real> plain_clover(gauge, Whole::mass, 0.0, how.options);
  plain_clover.apply(out, in);
  require_close(exported(out), local_part(lattice, whole.results[0].wilson), rounding<Real>(),
                where(lattice, how, "clover with csw 0"));
}

template void prove_clover<float>(const Whole&, const Lattice&, const How&);
template void prove_clover<double>(const Whole&, const Lattice&, const How&);

}  // namespace ropewalk::lattice::test
