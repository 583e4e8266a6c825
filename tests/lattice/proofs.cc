#include "lattice/proofs.hpp"

#include <cmath>
#include <stdexcept>

#include "lattice/proof_tools.hpp"

namespace ropewalk::lattice::test {
namespace {

// Applies M_oo - M_oe M_ee^-1 M_eo of Wilson's operator.
Numbers wilson_schur(const reference::Background& field, const Numbers& psi, double mass,
                     bool dagger) {
  const Numbers odd = reference::only(1, field.extents, psi, 12);
  const Numbers there_and_back = reference::hop(field, reference::hop(field, odd, dagger), dagger);
  Numbers out = odd;
  for (std::size_t k = 0; k < out.size(); ++k) {
    out[k] = (4 + mass) * odd[k] - there_and_back[k] / (4 + mass);
  }
  return out;
}

template <class Real>
Layout layout_of(const Lattice& lattice, const How& how) {
  return Layout(lattice, sizeof(Real), Vectors::space, 1, how.lanes);
}

// Fields of one parity: the hop onto each, by name and as part of a sum.
template <class Real>
void prove_halves(HoppingTerm<Real>& op, const Whole& whole, bool dagger, const std::string& at) {
  const Lattice& lattice = op.lattice();
  const Numbers psi = local_part(lattice, whole.psi);
  const Numbers expected = local_part(lattice, whole.results[dagger ? 1 : 0].hop);
  for (const Sites to : {Sites::even, Sites::odd}) {
    const Sites from = to == Sites::even ? Sites::odd : Sites::even;
    const int parity = to == Sites::even ? 0 : 1;
    const SpinorField<Real> in = imported(op.field(from), psi);
    SpinorField<Real> out = op.field(to);
    to == Sites::even ? op.hop_eo(out, in, dagger) : op.hop_oe(out, in, dagger);
    const Numbers hop = only(parity, lattice, expected);
    require_close(exported(out), hop, rounding<Real>(), "half " + at);
    const SpinorField<Real> centre = imported(op.field(to), psi);
    op.hop_add(out, 0.75, centre, -1.5, in, dagger);
    Numbers sum = only(parity, lattice, psi);
    for (std::size_t k = 0; k < sum.size(); ++k) sum[k] = 0.75 * sum[k] - 1.5 * hop[k];
    require_close(exported(out), sum, rounding<Real>(), "half with a centre, " + at);
  }
}

template <class Real>
Numbers applied(WilsonOperator<Real>& op, const Numbers& plain, bool dagger = false) {
  SpinorField<Real> out = op.field();
  op.apply(out, imported(op.field(), plain), dagger);
  return exported(out);
}

}  // namespace

Whole::Whole(const Extents& all, bool antiperiodic, int ls)
    : extents(all),
      antiperiodic_time(antiperiodic),
      wall{ls, 1.8, 0.05},
      field{all, plain(random_gauge(Lattice(all), gauge_seed)), {1, 1, 1, antiperiodic ? -1.0 : 1}},
      psi(random_spinor(Lattice(all), spinor_seed)),
      psi5(random_spinor(Lattice(all), spinor_seed, ls)),
      term(reference::clover_term(all, field.gauge, mass, csw)) {
  for (const bool dagger : {false, true}) {
    Results& r = results[dagger ? 1 : 0];
    r.hop = reference::hop(field, psi, dagger);
    r.wilson = reference::wilson(field, psi, mass, dagger);
    r.clover = add(reference::apply_term(term, psi), 1, r.hop);
    r.schur = wilson_schur(field, psi, mass, dagger);
    r.hop5 = reference::domain_wall_hop(field, psi5, ls, dagger);
    r.diagonal = reference::domain_wall_diagonal(psi5, wall, dagger);
    r.domain_wall = add(r.hop5, 1, r.diagonal);
  }
}

std::string How::text() const {
  return std::string("exchange ") + name(options.exchange) + ", strategy " +
         ropewalk::name(options.strategy) + ", " + std::to_string(options.threads) +
         " threads, links " + name(options.links) + ", " + std::to_string(lanes) + " lanes";
}

void require_close(const Numbers& found, const Numbers& expected, double tolerance,
                   const std::string& what) {
  if (found.size() != expected.size()) throw std::runtime_error(what + ": sizes differ");
  double difference = 0;
  double size = 0;
  for (std::size_t k = 0; k < found.size(); ++k) {
    difference += std::norm(found[k] - expected[k]);
    size += std::norm(expected[k]);
  }
  const double error = std::sqrt(difference);
  if (error <= tolerance * std::max(1.0, std::sqrt(size))) return;
  throw std::runtime_error(what + ": off by " + std::to_string(error) + " of " +
                           std::to_string(std::sqrt(size)));
}

template <class Real>
void prove_wilson(const Whole& whole, const Lattice& lattice, const How& how) {
  const GaugeField<Real> gauge = as<Real>(random_gauge(lattice, gauge_seed));
  HoppingTerm<Real> term(gauge, layout_of<Real>(lattice, how), how.options);
  WilsonOperator<Real> op(gauge, Whole::mass, how.options);
  const Numbers psi = local_part(lattice, whole.psi);
  for (const bool dagger : {false, true}) {
    const std::string at = where(lattice, how, dagger ? "dagger of the hop" : "hop");
    const Whole::Results& expected = whole.results[dagger ? 1 : 0];
    const SpinorField<Real> in = imported(term.field(), psi);
    SpinorField<Real> out = term.field();
    term.hop(out, in, dagger);
    require_close(exported(out), local_part(lattice, expected.hop), rounding<Real>(), at);
    term.hop_add(out, 4 + Whole::mass, in, 1, in, dagger);
    require_close(exported(out), local_part(lattice, expected.wilson), rounding<Real>(), at);
    require_close(applied(op, psi, dagger), local_part(lattice, expected.wilson), rounding<Real>(),
                  "Wilson's, " + at);
    if (!term.layout().checkered()) continue;
    prove_halves(term, whole, dagger, at);
    const SpinorField<Real> odd = imported(op.field(Sites::odd), psi);
    SpinorField<Real> schur = op.field(Sites::odd);
    op.apply_schur(schur, odd, dagger);
    require_close(exported(schur), local_part(lattice, expected.schur), rounding<Real>(),
                  "Schur's complement, " + at);
  }
}

template <class Real>
void prove_identities(const Lattice& lattice, const How& how) {
  const GaugeField<double> gauge = random_gauge(lattice, 31);
  const Numbers psi = random_spinor(lattice, 32);
  const Numbers phi = random_spinor(lattice, 33);
  WilsonOperator<Real> op(as<Real>(gauge), 0.2, how.options);
  const Numbers result = applied(op, psi);
  const double scale = dot(lattice, psi, psi).real();
  require_equal(dot(lattice, phi, result), dot(lattice, applied(op, phi, true), psi),
                10 * rounding<Real>(), scale, where(lattice, how, "<phi, M psi>"));
  require_close(reference::gamma5(applied(op, reference::gamma5(psi))), applied(op, psi, true),
                rounding<Real>(), where(lattice, how, "gamma5 hermiticity"));
  const Numbers g = random_transformation(lattice, 34);
  WilsonOperator<Real> other(as<Real>(transform_gauge(gauge, g)), 0.2, how.options);
  require_close(applied(other, transform_spinor(psi, g)), transform_spinor(result, g),
                rounding<Real>(), where(lattice, how, "gauge covariance"));
}

template <class Real>
void prove_free_field(const Lattice& lattice, const How& how) {
  const double two_pi = 2 * std::acos(-1.0);
  const double mass = 0.3;
  OperatorOptions options = how.options;
  options.antiperiodic_time = true;
  WilsonOperator<Real> op(GaugeField<Real>(lattice), mass, options);
  const Extents& n = lattice.global();
  for (int which = 0; which < 3; ++which) {
    const reference::Momentum p{two_pi * which / n[0], two_pi * (1 - which) / n[1],
                                two_pi * 2 * which / n[2], two_pi * (which + 0.5) / n[3]};
    std::array<std::complex<double>, 12> u{};
    for (std::size_t k = 0; k < 12; ++k) u[k] = std::polar(1.0, static_cast<double>(k * k));
    std::array<std::complex<double>, 12> expected{};
    const reference::Gamma at_p = reference::wilson_at(p, mass);
    for (std::size_t k = 0; k < 48; ++k) {
      expected[k / 4] += at_p[k / 12][k % 4] * u[k % 4 * 3 + k / 4 % 3];
    }
    require_close(applied(op, local_part(lattice, reference::plane_wave(n, p, u))),
                  local_part(lattice, reference::plane_wave(n, p, expected)), rounding<Real>(),
                  where(lattice, how, "plane wave"));
  }
}

template <class Real>
void prove_ways_equal(const Lattice& lattice, const std::vector<OperatorOptions>& ways) {
  const GaugeField<Real> gauge = as<Real>(random_gauge(lattice, 41));
  const Numbers psi = random_spinor(lattice, 42);
  Numbers first;
  for (const OperatorOptions& options : ways) {
    WilsonOperator<Real> op(gauge, 0.1, options);
    for (int time = 0; time < 3; ++time) {
      const Numbers result = applied(op, psi);
      if (first.empty()) first = result;
      require_close(result, first, 0, where(lattice, {options}, "not the bits of the first way"));
    }
  }
}

template void prove_wilson<float>(const Whole&, const Lattice&, const How&);
template void prove_wilson<double>(const Whole&, const Lattice&, const How&);
template void prove_identities<float>(const Lattice&, const How&);
template void prove_identities<double>(const Lattice&, const How&);
template void prove_free_field<float>(const Lattice&, const How&);
template void prove_free_field<double>(const Lattice&, const How&);
template void prove_ways_equal<float>(const Lattice&, const std::vector<OperatorOptions>&);
template void prove_ways_equal<double>(const Lattice&, const std::vector<OperatorOptions>&);

}  // namespace ropewalk::lattice::test
