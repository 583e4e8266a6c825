// Wilson's operator with the clover term (Sheikholeslami and Wohlert, Nucl. Phys. B259 (1985) 572).
#pragma once

#include <cstddef>
#include <span>
#include <vector>

#include "ropewalk/lattice/operators.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::lattice {

// M = A + D_h, A = 4 + mass + csw (i/2) sum_{mu<nu} sigma_munu F_munu, with sigma_munu = (i/2)
// [g_mu, g_nu] and F = (Q - Q^+)/8 of the sum Q of the four leaves around a site (Luescher et al.,
// Nucl. Phys. B478 (1996) 365, eqs. 2.19 and 2.24). csw = 1 is the value at tree level, csw = 0
// Wilson's operator.
//
// A is two Hermitian 6 x 6 matrices a site, one a chirality: 72 reals. Both A and its inverse are
// made with the operator, in double precision, and kept.
template <class Real>
class CloverOperator : public HoppingTerm<Real> {
 public:
  // Collective. Throws Error(argument) on every rank where A of some site has no inverse.
  CloverOperator(const GaugeField<Real>&, double mass, double csw, const OperatorOptions& = {});

  double mass() const noexcept { return mass_; }
  double csw() const noexcept { return csw_; }
  void apply(SpinorField<Real>& out, const SpinorField<Real>& in, bool dagger = false);
  // A and its inverse, on all sites or those of one parity. `out` may be `in`.
  void diagonal_part(SpinorField<Real>& out, const SpinorField<Real>& in);
  void diagonal_inverse(SpinorField<Real>& out, const SpinorField<Real>& in);
  // MULT of CCS-QCD: out = A^-1 D_h in, onto one parity from the other.
  void mult(SpinorField<Real>& out, const SpinorField<Real>& in, bool dagger = false);
  // M_oo - M_oe M_ee^-1 M_eo, or its adjoint, on the sites of in.
  void apply_schur(SpinorField<Real>& out, const SpinorField<Real>& in, bool dagger = false);
  // The same times A^-1 from the left, as CCS-QCD solves it: out = in - mult(mult(in)).
  void apply_schur_by_mult(SpinorField<Real>& out, const SpinorField<Real>& in);

  // The same for several fields at once, as HoppingTerm::hop: the blocks of a site, too, are read
  // from memory once for all of them.
  void apply(std::span<SpinorField<Real>> out, std::span<const SpinorField<Real>> in,
             bool dagger = false);
  void diagonal_part(std::span<SpinorField<Real>> out, std::span<const SpinorField<Real>> in);
  void diagonal_inverse(std::span<SpinorField<Real>> out, std::span<const SpinorField<Real>> in);
  void mult(std::span<SpinorField<Real>> out, std::span<const SpinorField<Real>> in,
            bool dagger = false);
  void apply_schur(std::span<SpinorField<Real>> out, std::span<const SpinorField<Real>> in,
                   bool dagger = false);
  void apply_schur_by_mult(std::span<SpinorField<Real>> out, std::span<const SpinorField<Real>> in);

  // sum of log |det A| over the sites. Collective.
  double log_determinant(Sites = Sites::all) const;

  // Operations of this rank in a mult onto `sites`, as CCS-QCD counts them: 1320 in the hop, 576 in
  // A^-1, at each site.
  double mult_flops(Sites = Sites::even) const noexcept;

 private:
  void make_terms(const GaugeField<Real>&);
  void multiply(const Buffer<Real>& blocks, std::span<SpinorField<Real>> out,
                std::span<const SpinorField<Real>> in);
  std::span<SpinorField<Real>> between(std::span<const SpinorField<Real>> in);

  double mass_;
  double csw_;
  Buffer<Real> term_;     // [vector site][chirality][36][lane]; see kernels/local.hpp
  Buffer<Real> inverse_;  // likewise
  double log_determinants_[2] = {0, 0};     // of this rank's even and odd sites
  std::vector<SpinorField<Real>> between_;  // the two hops
};

extern template class CloverOperator<float>;
extern template class CloverOperator<double>;

}  // namespace ropewalk::lattice
