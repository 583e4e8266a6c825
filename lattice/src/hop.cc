#include "hop.hpp"

#include <algorithm>

#include "agree.hpp"
#include "limits.hpp"
#include "ropewalk/error.hpp"
#include "shared.hpp"

namespace ropewalk::lattice::detail {

namespace {

// Returns how many ranks have their operators in one cache.
int ranks_a_cache(const Lattice& lattice, int threads) {
  if (lattice.size() == 1) return 1;
  const int nodes = lattice.collectives().nodes();
  const int on_node = nodes == 0 ? 1 : (lattice.size() + nodes - 1) / nodes;
  return std::min(on_node, std::max(1, limits().cores_a_cache / threads));
}

// So many rows are handed out at a time. They take some 3 us: messages are looked after that often,
// and beside 3 us neither the look nor the handing out counts.
constexpr std::ptrdiff_t vectors_a_block = 8;

[[noreturn]] void refuse(const std::string& message) { throw Error(ErrorCode::argument, message); }

template <class Part>
std::ptrdiff_t row_count(const Part& part) {
  return static_cast<std::ptrdiff_t>(part.table.rows.size());
}

}  // namespace

template <class Real>
Hop<Real>::Hop(const GaugeField<Real>& gauge, const Layout& wanted, const OperatorOptions& given)
    : layout(wanted),
      options(given),
      kernels(kernels::table<Real>(wanted.lanes())),
      lanes(lane_tables<Real>(wanted)),
      links(gauge, wanted, given.links, given.antiperiodic_time),
      team(shared_team(wanted.lattice(), given.threads)),
      sharers(ranks_a_cache(wanted.lattice(), team->size())),
      strategy(given.strategy) {}

template <class Real>
typename Hop<Real>::Part& Hop<Real>::part(Sites sites) {
  std::unique_ptr<Part>& made = parts[static_cast<int>(sites)];
  if (made) return *made;
  std::unique_ptr<Part> fresh;
  collectively(layout.lattice(), [&] {
    fresh = make_part(sites);
    if (any_divided(layout.lattice())) {
      fresh->faces = std::make_unique<Faces<Real>>(layout, fresh->table, options.strategy);
      fresh->faces->choose_stores(layout.lattice());
    }
  });
  if (fresh->faces) strategy = fresh->faces->strategy();
  made = std::move(fresh);  // only now: all ranks have theirs, or none
  return *made;
}

// Makes everything that needs no other rank.
template <class Real>
std::unique_ptr<typename Hop<Real>::Part> Hop<Real>::make_part(Sites sites) {
  auto fresh = std::make_unique<Part>();
  fresh->table = hop_table(layout, sites, options.antiperiodic_time);
  fresh->links = links.attach(fresh->table, sites);
  fresh->kernel = kernels.hop[static_cast<int>(links.form())][static_cast<int>(links.order(sites))];
  fresh->loop = std::make_unique<WorkStealing>(
      fresh->table.rows.size(), team->size(), options.comm_threads,
      static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, vectors_a_block / layout.inner())));
  fresh->put_off.resize(static_cast<std::size_t>(team->size()));
  for (PutOff& one : fresh->put_off) one.reserve(fresh->table.surface);
  return fresh;
}

template <class Real>
void Hop<Real>::check(const HopCall<Real>& call) const {
  if (!(call.out.layout() == layout) || !(call.in.layout() == layout) ||
      (call.centre != nullptr && !(call.centre->layout() == layout))) {
    refuse("out, in: fields of another layout than the operator's; make them with field()");
  }
  if (call.in.sites() != opposite(call.out.sites())) {
    refuse(std::string("in: a field on ") + name(call.in.sites()) + " sites, expected " +
           name(opposite(call.out.sites())) + " ones for an output on " + name(call.out.sites()) +
           "; a hop leads from one parity to the other");
  }
  if (call.centre != nullptr && call.centre->sites() != call.out.sites()) {
    refuse(std::string("centre: a field on ") + name(call.centre->sites()) + " sites, expected " +
           name(call.out.sites()) + " as the output has");
  }
  if (call.out.data() == call.in.data()) {
    refuse("out: the same field as in, expected another; a hop reads neighbours it has written");
  }
  if (call.centre != nullptr && call.b == 0) refuse("b: found 0, expected a factor of the hop");
}

template <class Real>
kernels::HopArguments<Real> Hop<Real>::arguments(const Part& part,
                                                 const HopCall<Real>& call) const {
  kernels::HopArguments<Real> a;
  a.rows = part.table.rows.data();
  a.row_count = row_count(part);
  a.faces = part.table.faces.data();
  a.lanes = &lanes;
  a.in = call.in.data();
  a.out = call.out.data();
  a.links = part.links;
  for (int leg = 0; part.faces && leg < kernels::leg_count; ++leg) {
    a.received[leg] = part.faces->received(leg);
  }
  const double scale = call.b * static_cast<double>(links.factor());
  a.scale = static_cast<Real>(scale);
  a.scaled = scale != 1;
  if (call.centre != nullptr) {
    a.centre = call.centre->data();
    a.centre_factor = static_cast<Real>(call.a / scale);
  }
  a.far = 1u << layout.order()[2] | 1u << layout.order()[3];
  a.inner = layout.inner();
  const double sites = static_cast<double>(call.out.size() + call.in.size());
  const double bytes = (sites + links.reals(call.out.sites())) * sizeof(Real);
  const OperatorLimits& cache = limits();
  const double shared_bytes = bytes * sharers;
  a.from_memory = shared_bytes > cache.cached_bytes;
  a.spinors_from_memory =
      shared_bytes > (a.inner == 1 ? cache.cached_bytes : cache.cached_slices_bytes);
  return a;
}

template <class Real>
typename Hop<Real>::Job Hop<Real>::job(const HopCall<Real>& call) {
  // The first hop onto these sites is a meeting of all ranks anyway.
  if (parts[static_cast<int>(call.out.sites())]) {
    check(call);
  } else {
    collectively(layout.lattice(), [&] { check(call); });
  }
  Part& p = part(call.out.sites());
  return {p, arguments(p, call), p.kernel[call.dagger ? 1 : 0], call.in.data(), call.dagger};
}

template <class Real>
void Hop<Real>::project(const Job& job, int worker) {
  job.part.faces->project(kernels, lanes, job.in, job.dagger, worker, team->size());
}

template <class Real>
void Hop<Real>::compute_share(const Job& job, int worker) {
  const std::ptrdiff_t rows = row_count(job.part), workers = team->size();
  job.kernel(job.arguments, rows * worker / workers, rows * (worker + 1) / workers);
}

// Rows that need faces are computed in their turn, too, once the faces are there: what the rows
// read then lies in the caches.
template <class Real>
void Hop<Real>::compute_what_can_be(const Job& job, int worker, std::ptrdiff_t begin,
                                    std::ptrdiff_t end) {
  if (job.part.faces->arrived()) return job.kernel(job.arguments, begin, end);
  const kernels::HopRow* rows = job.part.table.rows.data();
  PutOff& later = job.part.put_off[static_cast<std::size_t>(worker)];
  while (begin < end) {
    const bool surface = needs_other_rank(rows[begin]);
    std::ptrdiff_t next = begin + 1;
    while (next < end && needs_other_rank(rows[next]) == surface) ++next;
    if (surface) {
      later.add(begin, next);
    } else {
      job.kernel(job.arguments, begin, next);
    }
    begin = next;
  }
}

template <class Real>
void Hop<Real>::compute_put_off(const Job& job, int worker) {
  PutOff& later = job.part.put_off[static_cast<std::size_t>(worker)];
  for (const PutOff::Run& run : later.runs()) job.kernel(job.arguments, run.begin, run.end);
  later.clear();
}

template <class Real>
void Hop<Real>::exchange(Part& p, int worker) {
  const int communicating = options.comm_threads;
  if (worker < communicating) return exchange_share(worker, communicating, *p.faces);
  if (communicating > 0 || worker != 0) return;
  p.faces->start();
  p.faces->wait();
}

template <class Real>
void Hop<Real>::one_after_other(const Job& job) {
  team->run([&](int worker) {
    const double begin = now_us();
    project(job, worker);
    team->barrier();
    const double projected = now_us();
    exchange(job.part, worker);
    team->barrier();
    const double exchanged = now_us();
    compute_share(job, worker);
    if (worker == 0) times = {projected - begin, now_us() - exchanged, exchanged - projected, 0};
  });
}

// One thread computes, and makes progress with the messages between rows. Often the faces are there
// at once: then the rest is a hop as without an exchange.
template <class Real>
void Hop<Real>::compute_and_poll(const Job& job) {
  Faces<Real>& faces = *job.part.faces;
  const std::ptrdiff_t rows = row_count(job.part);
  const auto block = static_cast<std::ptrdiff_t>(job.part.loop->block());
  faces.start();
  std::ptrdiff_t next = 0;
  if (!faces.test()) {
    work_beside(faces, [&] {
      if (next == rows) return false;
      const std::ptrdiff_t begin = next;
      next = std::min(rows, begin + block);
      compute_what_can_be(job, 0, begin, next);
      return true;
    });
  }
  job.kernel(job.arguments, next, rows);
  faces.wait();
}

// How long the caller waited in wait(), or from the moment when no worker had anything left to
// compute until comm threads had received the last face.
template <class Real>
double Hop<Real>::waited_us(const Part& p, double projected) const {
  double idle = projected;
  for (const PutOff& worker : p.put_off) idle = std::max(idle, worker.idle_since_us);
  return std::max(p.faces->waited_us(), p.faces->lanes_done_us() - idle);
}

// Steps of parallel_overlap, with rows put off by each worker.
template <class Real>
void Hop<Real>::overlap(const Job& job, int worker) {
  const double begin = now_us();
  project(job, worker);
  team->barrier();
  const double projected = now_us();
  PutOff& own = job.part.put_off[static_cast<std::size_t>(worker)];
  own.clear();  // of a hop that an exception ended
  bool computes = false;
  if (team->size() == 1) {
    compute_and_poll(job);
  } else {
    overlap_worker(worker, *job.part.loop, *job.part.faces,
                   [&](std::size_t first, std::size_t last) {
                     computes = true;
                     compute_what_can_be(job, worker, static_cast<std::ptrdiff_t>(first),
                                         static_cast<std::ptrdiff_t>(last));
                   });
  }
  own.idle_since_us = computes ? now_us() : 0;
  team->barrier();
  const double computed = now_us();
  const double waited = worker == 0 ? waited_us(job.part, projected) : 0;
  compute_put_off(job, worker);
  if (worker == 0) {
    times = {projected - begin, computed - projected - waited, waited, now_us() - computed};
  }
}

template <class Real>
void Hop<Real>::overlapped(const Job& job) {
  try {
    team->run([&](int worker) { overlap(job, worker); });
  } catch (...) {
    job.part.loop->reset();
    throw;
  }
}

template <class Real>
void Hop<Real>::run(const HopCall<Real>& call) {
  const Job work = job(call);
  times = {};
  if (work.part.faces && options.exchange != ExchangeMode::off) {
    work.part.faces->begin();
    return options.exchange == ExchangeMode::overlap ? overlapped(work) : one_after_other(work);
  }
  const double begin = now_us();
  team->run([&](int worker) { compute_share(work, worker); });
  times.interior_us = now_us() - begin;
}

// Computes the part whose faces `in` has.
template <class Real>
typename Hop<Real>::Part& Hop<Real>::exchanged_part(const SpinorField<Real>& in) {
  const auto check = [&] {
    if (!(in.layout() == layout)) {
      refuse("in: a field of another layout than the operator's; make it with field()");
    }
  };
  const Sites onto = opposite(in.sites());
  if (parts[static_cast<int>(onto)]) {
    check();
  } else {
    collectively(layout.lattice(), check);  // as in job()
  }
  return part(onto);
}

template <class Real>
void Hop<Real>::exchange_only(const SpinorField<Real>& in, bool dagger) {
  Part& p = exchanged_part(in);
  if (!p.faces) return;
  p.faces->begin();
  team->run([&](int worker) {
    p.faces->project(kernels, lanes, in.data(), dagger, worker, team->size());
    team->barrier();
    exchange(p, worker);
  });
}

template <class Real>
std::int64_t Hop<Real>::exchange_beside(const SpinorField<Real>& in,
                                        const std::function<void()>& work) {
  Part& p = exchanged_part(in);
  if (!p.faces) return 0;
  Faces<Real>& faces = *p.faces;
  faces.begin();
  faces.project(kernels, lanes, in.data(), false, 0, 1);
  faces.start();
  try {
    std::int64_t done = 0;
    if (faces.test()) return done;
    work_beside(faces, [&] {
      work();
      ++done;
      return true;
    });
    return done;
  } catch (...) {
    faces.wait();  // what was started must end before another exchange
    throw;
  }
}

template struct Hop<float>;
template struct Hop<double>;

}  // namespace ropewalk::lattice::detail
