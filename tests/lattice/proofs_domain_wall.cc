// Compares the domain-wall operator with the reference.
#include "lattice/proof_tools.hpp"

namespace ropewalk::lattice::test {

// M (x_e, psi_o) with x_e = -M_ee^-1 M_eo psi_o is zero on even sites, where the inverse is right,
// and Schur's complement on odd ones: the reference needs no inverse of its own.
const Numbers& Whole::domain_wall_schur(bool dagger) const {
  const std::size_t which = dagger ? 1 : 0;
  std::call_once(once_[which], [&] {
    const std::size_t each = 12 * static_cast<std::size_t>(wall.ls);
    const Numbers odd = reference::only(1, extents, psi5, each);
    const Numbers hop = reference::domain_wall_hop(field, odd, wall.ls, dagger);
    DomainWallOperator<double> op(GaugeField<double>(Lattice(extents)),
                                  {wall.ls, wall.mass, wall.height});
    SpinorField<double> even = imported(op.field(Sites::even), hop);
    op.diagonal_inverse(even, even, dagger);
    const Numbers result =
        reference::domain_wall(field, add(odd, -1, exported(even)), wall, dagger);
    require_close(add(hop, 1, reference::only(0, extents, result, each)), hop,
                  10 * rounding<double>(), "diagonal inverse");
    schur5_[which] = reference::only(1, extents, result, each);
  });
  return schur5_[which];
}

template <class Real>
void prove_domain_wall(const Whole& whole, const Lattice& lattice, Vectors vectors,
                       const How& how) {
  const GaugeField<Real> gauge = as<Real>(random_gauge(lattice, gauge_seed));
  DomainWallOperator<Real> op(gauge, {whole.wall.ls, whole.wall.mass, whole.wall.height}, vectors,
                              how.options);
  const SpinorField<Real> in = imported(op.field(), local_part(lattice, whole.psi5));
  SpinorField<Real> out = op.field();
  for (const bool dagger : {false, true}) {
    const std::string at = std::string("domain wall, vectors ") + name(vectors) + ", " +
                           where(lattice, how, dagger ? "dagger" : "plain");
    const Whole::Results& expected = whole.results[dagger ? 1 : 0];
    op.hop(out, in, dagger);
    require_close(exported(out), local_part(lattice, expected.hop5), rounding<Real>(),
                  "hop, " + at);
    op.apply(out, in, dagger);
    require_close(exported(out), local_part(lattice, expected.domain_wall), rounding<Real>(), at);
    op.diagonal_part(out, in, dagger);
    require_close(exported(out), local_part(lattice, expected.diagonal), rounding<Real>(),
                  "diagonal part, " + at);
    op.diagonal_inverse(out, out, dagger);
    require_close(exported(out), local_part(lattice, whole.psi5), 10 * rounding<Real>(),
                  "diagonal inverse, " + at);
    if (!op.layout().checkered()) continue;
    const SpinorField<Real> odd = imported(op.field(Sites::odd), local_part(lattice, whole.psi5));
    SpinorField<Real> schur = op.field(Sites::odd);
    op.apply_schur(schur, odd, dagger);
    require_close(exported(schur), local_part(lattice, whole.domain_wall_schur(dagger)),
                  10 * rounding<Real>(), "Schur's complement, " + at);
  }
}

template <class Real>
void prove_domain_wall_identities(const Lattice& lattice, const How& how) {
  const GaugeField<double> gauge = random_gauge(lattice, 31);
  const DomainWall wall{8, 0.05, 1.8};
  const Numbers psi5 = random_spinor(lattice, 35, wall.fifth_extent);
  DomainWallOperator<Real> walls(as<Real>(gauge), wall, Vectors::space, how.options);
  SpinorField<Real> out = walls.field();
  walls.apply(out, imported(walls.field(), reference::gamma5_reflected(psi5, 8)));
  const Numbers turned = reference::gamma5_reflected(exported(out), 8);
  walls.apply(out, imported(walls.field(), psi5), true);
  require_close(exported(out), turned, rounding<Real>(),
                where(lattice, how, "gamma5 and reflection in s"));
}

template <class Real>
void prove_domain_wall_ways_equal(const Lattice& lattice,
                                  const std::vector<OperatorOptions>& ways) {
  const GaugeField<Real> gauge = as<Real>(random_gauge(lattice, 41));
  const DomainWall wall{8, 0.05, 1.8};
  const Numbers psi = random_spinor(lattice, 43, wall.fifth_extent);
  for (const Vectors vectors : {Vectors::space, Vectors::fifth}) {
    Numbers first;
    for (const OperatorOptions& options : ways) {
      DomainWallOperator<Real> op(gauge, wall, vectors, options);
      SpinorField<Real> out = op.field();
      op.apply(out, imported(op.field(), psi));
      const Numbers result = exported(out);
      if (first.empty()) first = result;
      require_close(result, first, 0, where(lattice, {options}, "not the bits of the first way"));
    }
  }
}

template void prove_domain_wall<float>(const Whole&, const Lattice&, Vectors, const How&);
template void prove_domain_wall<double>(const Whole&, const Lattice&, Vectors, const How&);
template void prove_domain_wall_identities<float>(const Lattice&, const How&);
template void prove_domain_wall_identities<double>(const Lattice&, const How&);
template void prove_domain_wall_ways_equal<float>(const Lattice&,
                                                  const std::vector<OperatorOptions>&);
template void prove_domain_wall_ways_equal<double>(const Lattice&,
                                                   const std::vector<OperatorOptions>&);

}  // namespace ropewalk::lattice::test
