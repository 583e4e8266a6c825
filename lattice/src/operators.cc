// This file has the hopping term and the Wilson operator of the public API.
#include "ropewalk/lattice/operators.hpp"

#include "agree.hpp"
#include "hop.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::lattice {

namespace {

constexpr double flops_per_site = 1344;  // Benchmark_ITT of Grid, 2017 to 2019

void check_options(const OperatorOptions& options) {
  if (options.threads < 1 || options.threads > 1024) {
    throw Error(ErrorCode::argument, "threads: found " + std::to_string(options.threads) +
                                         ", expected 1 to 1024; 1 is the caller alone");
  }
  if (options.comm_threads < 0 || options.comm_threads > options.threads) {
    throw Error(ErrorCode::argument, "comm_threads: found " + std::to_string(options.comm_threads) +
                                         ", expected 0 to the " + std::to_string(options.threads) +
                                         " threads; they are counted among these");
  }
}

void check_layout(const Lattice& links, const Layout& layout) {
  const Lattice& fields = layout.lattice();
  if (links.global() == fields.global() && links.rank_grid() == fields.rank_grid() &&
      links.coordinates() == fields.coordinates()) {
    return;
  }
  throw Error(ErrorCode::argument, "layout: of the lattice " + text(fields.global()) + " over " +
                                       text(fields.rank_grid()) + ", the links of " +
                                       text(links.global()) + " over " + text(links.rank_grid()) +
                                       ", expected the same; make it for gauge.lattice()");
}

std::string yes_or_no(bool value) { return value ? "true" : "false"; }

// Numbers of threads are each rank's own.
std::vector<AgreedFact> facts(const Layout& layout, const OperatorOptions& options,
                              std::size_t bytes_per_real) {
  return {{"precision", bytes_per_real == sizeof(float) ? "single" : "double"},
          {"layout: vectors", name(layout.vectors())},
          {"layout: fifth_extent", std::to_string(layout.fifth_extent())},
          {"layout: lanes", std::to_string(layout.lanes()),
           "pass the same on every rank; where nodes have different vectors, pass what all have"},
          {"layout: blocks", text(layout.blocks())},
          {"exchange", name(options.exchange)},
          {"strategy", ropewalk::name(options.strategy)},
          {"antiperiodic_time", yes_or_no(options.antiperiodic_time)},
          {"links", name(options.links)},
          {"face_precision", name(options.face_precision)}};
}

// Collective.
template <class Real>
std::unique_ptr<detail::Hop<Real>> make_hop(const GaugeField<Real>& gauge, const Layout& layout,
                                            const OperatorOptions& options) {
  const Lattice& lattice = gauge.lattice();
  std::unique_ptr<detail::Hop<Real>> made;
  collectively(lattice, [&] {
    collectively(lattice, [&] {
      check_options(options);
      check_layout(lattice, layout);
      (void)kernels::table<Real>(layout.lanes());  // throws where this machine has none
    });
    agree(lattice, facts(layout, options, sizeof(Real)));
    made = std::make_unique<detail::Hop<Real>>(gauge, layout, options);
  });
  return made;
}

}  // namespace

const char* name(ExchangeMode exchange) {
  constexpr const char* names[] = {"off", "sequential", "overlap"};
  return names[static_cast<int>(exchange)];
}

ExchangeMode exchange_mode(const std::string& wanted) {
  for (const ExchangeMode known :
       {ExchangeMode::off, ExchangeMode::sequential, ExchangeMode::overlap}) {
    if (wanted == name(known)) return known;
  }
  throw Error(ErrorCode::argument,
              "exchange: found \"" + wanted + "\", expected off, sequential or overlap");
}

const char* name(Links links) {
  constexpr const char* names[] = {"automatic", "full", "two-rows"};
  return names[static_cast<int>(links)];
}

const char* name(FacePrecision precision) {
  return precision == FacePrecision::full ? "full" : "half";
}

FacePrecision face_precision(const std::string& wanted) {
  for (const FacePrecision known : {FacePrecision::full, FacePrecision::half}) {
    if (wanted == name(known)) return known;
  }
  throw Error(ErrorCode::argument,
              "face_precision: found \"" + wanted + "\", expected full or half");
}

template <class Real>
HoppingTerm<Real>::HoppingTerm(const GaugeField<Real>& gauge, const Layout& layout,
                               const OperatorOptions& options)
    : hop_(make_hop(gauge, layout, options)) {}
template <class Real>
HoppingTerm<Real>::~HoppingTerm() = default;
template <class Real>
HoppingTerm<Real>::HoppingTerm(HoppingTerm&&) noexcept = default;
template <class Real>
HoppingTerm<Real>& HoppingTerm<Real>::operator=(HoppingTerm&&) noexcept = default;

template <class Real>
const Layout& HoppingTerm<Real>::layout() const noexcept {
  return hop_->layout;
}
template <class Real>
const OperatorOptions& HoppingTerm<Real>::options() const noexcept {
  return hop_->options;
}

template <class Real>
void HoppingTerm<Real>::hop(SpinorField<Real>& out, const SpinorField<Real>& in, bool dagger) {
  hop_->run({out, in, dagger});
}

template <class Real>
void HoppingTerm<Real>::hop_eo(SpinorField<Real>& even, const SpinorField<Real>& odd, bool dagger) {
  if (even.sites() != Sites::even) {
    throw Error(ErrorCode::argument, std::string("even: a field on ") + name(even.sites()) +
                                         " sites, expected one on even sites");
  }
  hop(even, odd, dagger);
}

template <class Real>
void HoppingTerm<Real>::hop_oe(SpinorField<Real>& odd, const SpinorField<Real>& even, bool dagger) {
  if (odd.sites() != Sites::odd) {
    throw Error(ErrorCode::argument, std::string("odd: a field on ") + name(odd.sites()) +
                                         " sites, expected one on odd sites");
  }
  hop(odd, even, dagger);
}

template <class Real>
void HoppingTerm<Real>::hop_add(SpinorField<Real>& out, double a, const SpinorField<Real>& centre,
                                double b, const SpinorField<Real>& in, bool dagger) {
  hop_->run({out, in, dagger, &centre, a, b});
}

template <class Real>
void HoppingTerm<Real>::hop(std::span<SpinorField<Real>> out, std::span<const SpinorField<Real>> in,
                            bool dagger) {
  hop_->run(out, 0, {}, 1, in, dagger);
}

template <class Real>
void HoppingTerm<Real>::hop_add(std::span<SpinorField<Real>> out, double a,
                                std::span<const SpinorField<Real>> centre, double b,
                                std::span<const SpinorField<Real>> in, bool dagger) {
  hop_->run(out, a, centre, b, in, dagger);
}

template <class Real>
void HoppingTerm<Real>::exchange_only(const SpinorField<Real>& in, bool dagger) {
  hop_->exchange_only(in, dagger);
}

template <class Real>
std::int64_t HoppingTerm<Real>::exchange_beside(const SpinorField<Real>& in,
                                                const std::function<void()>& work) {
  return hop_->exchange_beside(in, work);
}

template <class Real>
void HoppingTerm<Real>::hop_in_regions(SpinorField<Real>& out, const SpinorField<Real>& in,
                                       const ParallelRegion& region) {
  hop_->run_in_regions({out, in}, region);
}

template <class Real>
void HoppingTerm<Real>::set_exchange(ExchangeMode exchange) {
  hop_->options.exchange = exchange;
}
template <class Real>
HopTimes HoppingTerm<Real>::times() const noexcept {
  return hop_->times;
}
template <class Real>
Strategy HoppingTerm<Real>::strategy() const noexcept {
  return hop_->strategy;
}

template <class Real>
std::size_t HoppingTerm<Real>::exchanged_bytes() const noexcept {
  const Layout& l = layout();
  std::size_t out = 0;
  for (int d = 0; d < dimensions; ++d) {
    if (lattice().rank_grid()[d] > 1) {
      out += 2 * lattice().local_sites() / static_cast<std::size_t>(lattice().local()[d]);
    }
  }
  out *= static_cast<std::size_t>(l.fifth_extent());
  if (options().face_precision == FacePrecision::full) return out * 12 * sizeof(Real);
  const std::size_t exponents = out / static_cast<std::size_t>(l.lanes());
  return out * 12 * sizeof(std::uint16_t) + exponents * sizeof(std::int16_t);
}

template <class Real>
double HoppingTerm<Real>::flops(Sites sites) const noexcept {
  return flops_per_site * static_cast<double>(lattice().local_sites()) * layout().fifth_extent() /
         (sites == Sites::all ? 1 : 2);
}

// Links: all of them in either case; on one parity each of the eight of a site comes once.
template <class Real>
double HoppingTerm<Real>::bytes(Sites sites, int fields) const noexcept {
  const double volume = static_cast<double>(lattice().local_sites());
  const double link = links() == Links::two_rows ? 12 : 18;
  const double spinors =
      2 * 24.0 * fields * layout().fifth_extent() / (sites == Sites::all ? 1 : 2);
  return volume * (dimensions * link + spinors) * sizeof(Real);
}

template <class Real>
const char* HoppingTerm<Real>::isa() const noexcept {
  return hop_->kernels.isa;
}
template <class Real>
Links HoppingTerm<Real>::links() const noexcept {
  return hop_->links.stored();
}

template <class Real>
WilsonOperator<Real>::WilsonOperator(const GaugeField<Real>& gauge, double mass,
                                     const OperatorOptions& options)
    : HoppingTerm<Real>(gauge,
                        made_collectively(gauge.lattice(),
                                          [&] {
                                            require_finite("mass", mass);
                                            require_inverse("mass", mass, (4 + mass) / 4,
                                                            "the diagonal 4 + mass is 0");
                                            return Layout(gauge.lattice(), sizeof(Real));
                                          }),
                        options),
      mass_(mass) {
  collectively(gauge.lattice(), [&] { agree(gauge.lattice(), {{"mass", exactly(mass)}}); });
}

template <class Real>
void WilsonOperator<Real>::apply(SpinorField<Real>& out, const SpinorField<Real>& in, bool dagger) {
  this->hop_add(out, diagonal(), in, 1, in, dagger);
}

template <class Real>
void WilsonOperator<Real>::apply(std::span<SpinorField<Real>> out,
                                 std::span<const SpinorField<Real>> in, bool dagger) {
  this->hop_add(out, diagonal(), in, 1, in, dagger);
}

template <class Real>
void WilsonOperator<Real>::apply_schur(SpinorField<Real>& out, const SpinorField<Real>& in,
                                       bool dagger) {
  apply_schur(std::span(&out, 1), std::span(&in, 1), dagger);
}

template <class Real>
void WilsonOperator<Real>::apply_schur(std::span<SpinorField<Real>> out,
                                       std::span<const SpinorField<Real>> in, bool dagger) {
  detail::check_numbers(out.size(), in.size());
  const std::span<SpinorField<Real>> between =
      detail::between(between_, this->layout(), opposite(in.front().sites()), in.size());
  this->hop(between, in, dagger);
  this->hop_add(out, diagonal(), in, -1 / diagonal(), between, dagger);
}

template class HoppingTerm<float>;
template class HoppingTerm<double>;
template class WilsonOperator<float>;
template class WilsonOperator<double>;

}  // namespace ropewalk::lattice
