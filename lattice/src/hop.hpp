// The engine under every operator: tables, links, faces and threads of one gauge field and layout.
#pragma once

#include <memory>

#include "exchange.hpp"
#include "kernels/kernels.hpp"
#include "links.hpp"
#include "ropewalk/lattice/operators.hpp"
#include "tables.hpp"
#include "team.hpp"

namespace ropewalk::lattice::detail {

// out = a centre + b D_h in.
template <class Real>
struct HopCall {
  SpinorField<Real>& out;
  const SpinorField<Real>& in;
  bool dagger = false;
  const SpinorField<Real>* centre = nullptr;
  double a = 0;
  double b = 1;
};

template <class Real>
struct Hop {
  Hop(const GaugeField<Real>&, const Layout&, const OperatorOptions&);

  void run(const HopCall<Real>&);
  void exchange_only(const SpinorField<Real>& in, bool dagger);

  // What belongs to the hop onto one set of sites; made at first use.
  struct Part {
    HopTable table;
    const Real* links = nullptr;
    std::unique_ptr<Faces<Real>> faces;
  };
  Part& part(Sites sites);
  void check(const HopCall<Real>&) const;
  kernels::HopArguments<Real> arguments(const Part&, const HopCall<Real>&) const;
  void compute(const Part&, const kernels::HopArguments<Real>&, bool dagger, std::ptrdiff_t begin,
               std::ptrdiff_t end);
  void compute_and_test(Part&, const kernels::HopArguments<Real>&, bool dagger);

  Layout layout;
  OperatorOptions options;
  const kernels::Table<Real>& kernels;
  kernels::LaneTables<Real> lanes;
  OperatorLinks<Real> links;
  Team team;
  std::unique_ptr<Part> parts[3];  // by Sites
  Strategy strategy;               // of the first exchange, for the others
  HopTimes times;
};

extern template struct Hop<float>;
extern template struct Hop<double>;

}  // namespace ropewalk::lattice::detail
