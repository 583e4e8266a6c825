#include "hop.hpp"

#include <chrono>

#include "ropewalk/error.hpp"

namespace ropewalk::lattice::detail {

namespace {

double now_us() {
  using namespace std::chrono;
  return duration<double, std::micro>(steady_clock::now().time_since_epoch()).count();
}

// What a core has close by: second-level caches have 1 to 2 MiB.
constexpr double cached_bytes = 1.5e6;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::argument, message); }

}  // namespace

template <class Real>
Hop<Real>::Hop(const GaugeField<Real>& gauge, const Layout& wanted, const OperatorOptions& given)
    : layout(wanted),
      options(given),
      kernels(kernels::table<Real>(wanted.lanes())),
      lanes(lane_tables<Real>(wanted)),
      links(gauge, wanted, given.links, given.antiperiodic_time),
      team(given.threads),
      strategy(given.strategy) {}

template <class Real>
typename Hop<Real>::Part& Hop<Real>::part(Sites sites) {
  std::unique_ptr<Part>& made = parts[static_cast<int>(sites)];
  if (made) return *made;
  auto fresh = std::make_unique<Part>();
  fresh->table = hop_table(layout, sites, options.antiperiodic_time);
  fresh->links = links.attach(fresh->table, sites);
  if (any_divided(layout.lattice())) {
    fresh->faces = std::make_unique<Faces<Real>>(layout, fresh->table, strategy);
    strategy = fresh->faces->strategy();
  }
  made = std::move(fresh);
  return *made;
}

template <class Real>
void Hop<Real>::check(const HopCall<Real>& call) const {
  if (!(call.out.layout() == layout) || !(call.in.layout() == layout) ||
      (call.centre != nullptr && !(call.centre->layout() == layout)))
    refuse("out, in: fields of another layout than the operator's; make them with field()");
  if (call.in.sites() != opposite(call.out.sites()))
    refuse(std::string("in: a field on ") + name(call.in.sites()) + " sites, expected " +
           name(opposite(call.out.sites())) + " ones for an output on " + name(call.out.sites()) +
           "; a hop leads from one parity to the other");
  if (call.centre != nullptr && call.centre->sites() != call.out.sites())
    refuse(std::string("centre: a field on ") + name(call.centre->sites()) + " sites, expected " +
           name(call.out.sites()) + " as the output has");
  if (call.out.data() == call.in.data())
    refuse("out: the same field as in, expected another; a hop reads neighbours it has written");
  if (call.centre != nullptr && call.b == 0) refuse("b: found 0, expected a factor of the hop");
}

template <class Real>
kernels::HopArguments<Real> Hop<Real>::arguments(const Part& part,
                                                 const HopCall<Real>& call) const {
  kernels::HopArguments<Real> a;
  a.rows = part.table.rows.data();
  a.faces = part.table.faces.data();
  a.first_face_row = part.table.interior;
  a.lanes = &lanes;
  a.in = call.in.data();
  a.out = call.out.data();
  a.links = part.links;
  for (int leg = 0; part.faces && leg < kernels::leg_count; ++leg)
    a.received[leg] = part.faces->received(leg);
  const double scale = call.b * static_cast<double>(links.factor());
  a.scale = static_cast<Real>(scale);
  a.scaled = scale != 1;
  if (call.centre != nullptr) {
    a.centre = call.centre->data();
    a.centre_factor = static_cast<Real>(call.a / scale);
  }
  a.inner = layout.inner();
  const double sites = static_cast<double>(call.out.size() + call.in.size());
  a.prefetch = (sites + links.reals(call.out.sites())) * sizeof(Real) > cached_bytes;
  return a;
}

template <class Real>
void Hop<Real>::compute(const Part&, const kernels::HopArguments<Real>& a, bool dagger,
                        std::ptrdiff_t begin, std::ptrdiff_t end) {
  const auto kernel = kernels.hop[static_cast<int>(links.form())][dagger ? 1 : 0];
  const std::ptrdiff_t count = end - begin, threads = team.size();
  if (count <= 0) return;
  team.run([&](int thread) {
    kernel(a, begin + count * thread / threads, begin + count * (thread + 1) / threads);
  });
}

// The interior; the caller's thread gives the messages a push now and then.
template <class Real>
void Hop<Real>::compute_and_test(Part& part, const kernels::HopArguments<Real>& a, bool dagger) {
  constexpr std::ptrdiff_t pieces = 8;
  const auto kernel = kernels.hop[static_cast<int>(links.form())][dagger ? 1 : 0];
  const std::ptrdiff_t count = part.table.interior, threads = team.size();
  team.run([&](int thread) {
    const std::ptrdiff_t begin = count * thread / threads;
    const std::ptrdiff_t end = count * (thread + 1) / threads;
    if (thread != 0) return kernel(a, begin, end);
    for (std::ptrdiff_t p = 0; p < pieces; ++p) {
      kernel(a, begin + (end - begin) * p / pieces, begin + (end - begin) * (p + 1) / pieces);
      part.faces->test();
    }
  });
}

template <class Real>
void Hop<Real>::run(const HopCall<Real>& call) {
  check(call);
  Part& p = part(call.out.sites());
  const kernels::HopArguments<Real> a = arguments(p, call);
  const auto rows = static_cast<std::ptrdiff_t>(p.table.rows.size());
  times = {};
  const double begin = now_us();
  if (!p.faces || options.exchange == Exchange::off) {
    compute(p, a, call.dagger, 0, rows);
    times.interior_us = now_us() - begin;
    return;
  }
  p.faces->project(kernels, lanes, call.in.data(), call.dagger, team);
  const double projected = now_us();
  p.faces->start();
  if (options.exchange == Exchange::overlap) compute_and_test(p, a, call.dagger);
  const double computed = now_us();
  p.faces->wait();
  const double waited = now_us();
  compute(p, a, call.dagger, options.exchange == Exchange::overlap ? p.table.interior : 0, rows);
  times = {projected - begin, computed - projected, waited - computed, now_us() - waited};
}

template <class Real>
void Hop<Real>::exchange_only(const SpinorField<Real>& in, bool dagger) {
  Part& p = part(opposite(in.sites()));
  if (!p.faces) return;
  p.faces->project(kernels, lanes, in.data(), dagger, team);
  p.faces->start();
  p.faces->wait();
}

template struct Hop<float>;
template struct Hop<double>;

}  // namespace ropewalk::lattice::detail
