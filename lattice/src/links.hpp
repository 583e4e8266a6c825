// An operator's own copy of the gauge field, in the order and form its kernels read.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "kernels/kernels.hpp"
#include "ropewalk/lattice/operators.hpp"
#include "tables.hpp"

namespace ropewalk::lattice {

// Links by site (see LinkSlots), for hops on all sites; and row after row, eight links each, for
// hops onto one parity: they use each link once, so what they read is then one stream.
template <class Real>
class OperatorLinks {
 public:
  // Collective where the lattice is divided.
  OperatorLinks(const GaugeField<Real>&, const Layout&, Links wanted, bool antiperiodic);

  kernels::LinkForm form() const noexcept { return form_; }
  Links stored() const noexcept {
    return form_ == kernels::LinkForm::two_rows ? Links::two_rows : Links::full;
  }
  // Two rows are stored without the factor -1/2 of the hopping term, so that they give the third.
  Real factor() const noexcept {
    return form_ == kernels::LinkForm::two_rows ? Real(-0.5) : Real(1);
  }
  kernels::LinkOrder order(Sites sites) const noexcept {
    return sites == Sites::all ? kernels::LinkOrder::by_site : kernels::LinkOrder::by_row;
  }
  // How many numbers of links a hop onto these sites reads.
  double reals(Sites sites) const noexcept {
    const double slots = static_cast<double>(slots_.slot.size() * dimensions);
    return slots * static_cast<double>(link_reals_) + (sites == Sites::all ? extra_reals() : 0);
  }

  // Sets HopRow::link of a table onto `sites`, and returns the links it counts in. Those of one
  // parity are made at first use.
  const Real* attach(HopTable& table, Sites sites);

 private:
  double extra_reals() const noexcept {
    return static_cast<double>(slots_.extras.size() * link_reals_);
  }
  void choose_form(const GaugeField<Real>&, Links wanted);
  void fill(const GaugeField<Real>&, bool antiperiodic);
  void put_adjoint(Real* to, const Real* u, const Real* sign) const;
  Buffer<Real> by_row(const HopTable& table, Sites sites) const;

  Layout layout_;
  LinkSlots slots_;
  kernels::LinkForm form_ = kernels::LinkForm::full;
  std::size_t link_reals_ = 0;
  Buffer<Real> by_site_;
  Buffer<Real> by_parity_[2];
};

}  // namespace ropewalk::lattice
