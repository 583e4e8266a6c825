// The operators against the reference, for ranks as threads and for ranks of an MPI. Everything
// here throws on the rank that finds a difference.
#pragma once

#include <mutex>
#include <string>
#include <vector>

#include "lattice/reference.hpp"
#include "lattice/support.hpp"
#include "ropewalk/lattice/clover.hpp"
#include "ropewalk/lattice/operators.hpp"

namespace ropewalk::lattice::test {

// A lattice as one process sees it whole, and what the reference makes of its fields.
struct Whole {
  Whole(const Extents& extents, bool antiperiodic_time, int ls);

  Extents extents;
  bool antiperiodic_time;
  reference::DomainWall wall;
  static constexpr double mass = 0.1;
  static constexpr double csw = 1.3;
  reference::Background field;
  Numbers psi;
  Numbers psi5;
  Numbers term;     // the clover term of each site, 12 x 12
  struct Results {  // one for the operator, one for its dagger
    Numbers hop;
    Numbers wilson;
    Numbers clover;
    Numbers schur;  // of Wilson's operator, on odd sites
    Numbers hop5;
    Numbers domain_wall;
    Numbers diagonal;  // part of the domain-wall operator
  };
  Results results[2];
  // M_oo - M_oe M_ee^-1 M_eo of the domain-wall operator; made when first asked for.
  const Numbers& domain_wall_schur(bool dagger) const;

 private:
  mutable std::once_flag once_[2];
  mutable Numbers schur5_[2];
};

// How operators are made.
struct How {
  OperatorOptions options;
  int lanes = 0;  // of vectors; 0: what the machine has
  std::string text() const;
};

// Each of them collective over the lattice's ranks.
template <class Real>
void prove_wilson(const Whole&, const Lattice&, const How&);
template <class Real>
void prove_domain_wall(const Whole&, const Lattice&, Vectors, const How&);
template <class Real>
void prove_clover(const Whole&, const Lattice&, const How&);
// x of M x = b, put into the reference's M: Wilson's operator, with and without the clover term,
// and the domain-wall operator; whole, red-black, and in mixed precision.
void prove_solutions(const Whole&, const Lattice&, const How&);
// Without the reference: identities of the operators themselves.
template <class Real>
void prove_identities(const Lattice&, const How&);
template <class Real>
void prove_domain_wall_identities(const Lattice&, const How&);
template <class Real>
void prove_free_field(const Lattice&, const How&);
// Every way of exchanging and computing gives the same bits.
template <class Real>
void prove_ways_equal(const Lattice&, const std::vector<OperatorOptions>&);
template <class Real>
void prove_domain_wall_ways_equal(const Lattice&, const std::vector<OperatorOptions>&);

// Fields to and from plain arrays.
template <class Real>
SpinorField<Real> imported(SpinorField<Real> field, const Numbers& plain) {
  field.import_from(plain.data());
  return field;
}
template <class Real>
Numbers exported(const SpinorField<Real>& field) {
  Numbers out(field.layout().lattice().local_sites() * 12 *
              static_cast<std::size_t>(field.layout().fifth_extent()));
  field.export_to(out.data());
  return out;
}

// Throws where |found - expected| is more than `tolerance` of |expected|, on this rank.
void require_close(const Numbers& found, const Numbers& expected, double tolerance,
                   const std::string& what);

template <class Real>
constexpr double rounding() {
  return sizeof(Real) == 4 ? 2e-6 : 1e-14;
}

}  // namespace ropewalk::lattice::test
