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

// Whether a hop of so many fields onto these sites has been made before.
template <class Real>
bool has(const Hop<Real>& hop, Sites sites, std::size_t fields) {
  const auto& part = hop.parts[static_cast<int>(sites)];
  return part && part->at_once.contains(fields);
}

}  // namespace

void check_numbers(std::size_t out, std::size_t in) {
  if (out == in && out > 0) return;
  refuse("out, in: " + std::to_string(out) + " and " + std::to_string(in) +
         " fields, expected as many of each, and one at least");
}

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
typename Hop<Real>::AtOnce& Hop<Real>::at_once(Sites sites, std::size_t fields) {
  std::unique_ptr<Part>& part = parts[static_cast<int>(sites)];
  if (has(*this, sites, fields)) return part->at_once.find(fields)->second;
  std::unique_ptr<Part> fresh;
  std::map<std::size_t, AtOnce> made;
  collectively(layout.lattice(), [&] {
    if (!part) fresh = make_part(sites);
    made.emplace(fields, make_at_once(part ? *part : *fresh, fields));
  });
  if (!part) part = std::move(fresh);  // only now: all ranks have theirs, or none
  part->at_once.merge(made);
  AtOnce& out = part->at_once.find(fields)->second;
  if (out.faces) strategy = out.faces->strategy();
  return out;
}

// Makes everything that needs no other rank.
template <class Real>
std::unique_ptr<typename Hop<Real>::Part> Hop<Real>::make_part(Sites sites) {
  auto fresh = std::make_unique<Part>();
  fresh->table = hop_table(layout, sites, options.antiperiodic_time);
  fresh->links = links.attach(fresh->table, sites);
  fresh->kernel = kernels.hop[static_cast<int>(links.form())][static_cast<int>(links.order(sites))];
  fresh->put_off.resize(static_cast<std::size_t>(team->size()));
  for (PutOff& one : fresh->put_off) one.reserve(fresh->table.surface);
  return fresh;
}

// Collective where the lattice is divided.
template <class Real>
typename Hop<Real>::AtOnce Hop<Real>::make_at_once(Part& part, std::size_t fields) {
  AtOnce made;
  const std::ptrdiff_t vectors = layout.inner() * static_cast<std::ptrdiff_t>(fields);
  made.loop = std::make_unique<WorkStealing>(
      part.table.rows.size(), team->size(), options.comm_threads,
      static_cast<std::size_t>(std::max<std::ptrdiff_t>(1, vectors_a_block / vectors)));
  made.arguments.resize(fields);
  if (any_divided(layout.lattice())) {
    made.faces = std::make_unique<Faces<Real>>(layout, part.table, options.strategy,
                                               options.face_precision, fields);
    made.faces->choose_stores(layout.lattice());
  }
  return made;
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

// Workers write the fields row by row, for one after the other of them.
template <class Real>
void Hop<Real>::check(std::span<const HopCall<Real>> calls) const {
  for (const HopCall<Real>& one : calls) {
    check(one);
    if (one.out.sites() != calls.front().out.sites()) {
      refuse(std::string("out: fields on ") + name(calls.front().out.sites()) + " and " +
             name(one.out.sites()) + " sites, expected the same for all; hop them by turns");
    }
    for (const HopCall<Real>& other : calls) {
      if (&other == &one) continue;
      if (one.out.data() == other.out.data() || one.out.data() == other.in.data() ||
          (other.centre != nullptr && one.out.data() == other.centre->data())) {
        refuse(
            "out: a field that is given twice, expected each once and none of the others' "
            "input; results would depend on the order");
      }
    }
  }
}

template <class Real>
kernels::HopArguments<Real> Hop<Real>::arguments(const Part& part, const AtOnce& at_once,
                                                 const HopCall<Real>& call,
                                                 std::size_t field) const {
  kernels::HopArguments<Real> a;
  a.rows = part.table.rows.data();
  a.row_count = row_count(part);
  a.faces = part.table.faces.data();
  a.lanes = &lanes;
  a.in = call.in.data();
  a.out = call.out.data();
  a.links = part.links;
  for (int leg = 0; at_once.faces && leg < kernels::leg_count; ++leg) {
    a.received[leg] = at_once.faces->received(leg, field);
    a.exponents[leg] = at_once.faces->exponents(leg, field);
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
  const auto sites =
      static_cast<double>((call.out.size() + call.in.size()) * at_once.arguments.size());
  const double bytes = (sites + links.reals(call.out.sites())) * sizeof(Real);
  const OperatorLimits& cache = limits();
  const double shared_bytes = bytes * sharers;
  a.from_memory = shared_bytes > cache.cached_bytes;
  a.spinors_from_memory =
      shared_bytes > (a.inner == 1 ? cache.cached_bytes : cache.cached_slices_bytes);
  return a;
}

template <class Real>
typename Hop<Real>::Job Hop<Real>::job(std::span<const HopCall<Real>> calls) {
  const Sites sites = calls.front().out.sites();
  // The first hop of so many fields onto these sites is a meeting of all ranks anyway.
  if (has(*this, sites, calls.size())) {
    check(calls);
  } else {
    collectively(layout.lattice(), [&] { check(calls); });
  }
  AtOnce& fields = at_once(sites, calls.size());
  Part& part = *parts[static_cast<int>(sites)];
  for (std::size_t f = 0; f < calls.size(); ++f) {
    fields.arguments[f] = arguments(part, fields, calls[f], f);
  }
  const bool dagger = calls.front().dagger;
  return {part, fields, part.kernel[dagger ? 1 : 0], dagger};
}

template <class Real>
void Hop<Real>::project(const Job& job, int worker) {
  for (std::size_t f = 0; f < job.fields.arguments.size(); ++f) {
    job.faces().project(kernels, lanes, job.fields.arguments[f].in, f, job.dagger, worker,
                        team->size());
  }
}

template <class Real>
void Hop<Real>::compute_share(const Job& job, int worker) {
  const std::ptrdiff_t rows = row_count(job.part), workers = team->size();
  job.compute(rows * worker / workers, rows * (worker + 1) / workers);
}

// Rows that need faces are computed in their turn, too, once the faces are there: what the rows
// read then lies in the caches.
template <class Real>
void Hop<Real>::compute_what_can_be(const Job& job, int worker, std::ptrdiff_t begin,
                                    std::ptrdiff_t end) {
  if (job.faces().arrived()) return job.compute(begin, end);
  const kernels::HopRow* rows = job.part.table.rows.data();
  PutOff& later = job.part.put_off[static_cast<std::size_t>(worker)];
  while (begin < end) {
    const bool surface = needs_other_rank(rows[begin]);
    std::ptrdiff_t next = begin + 1;
    while (next < end && needs_other_rank(rows[next]) == surface) ++next;
    if (surface) {
      later.add(begin, next);
    } else {
      job.compute(begin, next);
    }
    begin = next;
  }
}

template <class Real>
void Hop<Real>::compute_put_off(const Job& job, int worker) {
  PutOff& later = job.part.put_off[static_cast<std::size_t>(worker)];
  for (const PutOff::Run& run : later.runs()) job.compute(run.begin, run.end);
  later.clear();
}

template <class Real>
void Hop<Real>::exchange(Faces<Real>& faces, int worker) {
  const int communicating = options.comm_threads;
  if (worker < communicating) return exchange_share(worker, communicating, faces);
  if (communicating > 0 || worker != 0) return;
  faces.start();
  faces.wait();
}

template <class Real>
void Hop<Real>::one_after_other(const Job& job) {
  team->run([&](int worker) {
    const double begin = now_us();
    project(job, worker);
    team->barrier();
    const double projected = now_us();
    exchange(job.faces(), worker);
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
  Faces<Real>& faces = job.faces();
  const std::ptrdiff_t rows = row_count(job.part);
  const auto block = static_cast<std::ptrdiff_t>(job.fields.loop->block());
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
  job.compute(next, rows);
  faces.wait();
}

// How long the caller waited in wait(), or from the moment when no worker had anything left to
// compute until comm threads had received the last face.
template <class Real>
double Hop<Real>::waited_us(const Job& job, double projected) const {
  double idle = projected;
  for (const PutOff& worker : job.part.put_off) idle = std::max(idle, worker.idle_since_us);
  return std::max(job.faces().waited_us(), job.faces().lanes_done_us() - idle);
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
    overlap_worker(worker, *job.fields.loop, job.faces(), [&](std::size_t first, std::size_t last) {
      computes = true;
      compute_what_can_be(job, worker, static_cast<std::ptrdiff_t>(first),
                          static_cast<std::ptrdiff_t>(last));
    });
  }
  own.idle_since_us = computes ? now_us() : 0;
  team->barrier();
  const double computed = now_us();
  const double waited = worker == 0 ? waited_us(job, projected) : 0;
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
    job.fields.loop->reset();
    throw;
  }
}

template <class Real>
void Hop<Real>::run(std::span<const HopCall<Real>> calls) {
  if (calls.empty()) return;
  const Job work = job(calls);
  times = {};
  if (work.fields.faces && options.exchange != ExchangeMode::off) {
    work.faces().begin();
    return options.exchange == ExchangeMode::overlap ? overlapped(work) : one_after_other(work);
  }
  const double begin = now_us();
  team->run([&](int worker) { compute_share(work, worker); });
  times.interior_us = now_us() - begin;
}

template <class Real>
void Hop<Real>::run(std::span<SpinorField<Real>> out, double a,
                    std::span<const SpinorField<Real>> centre, double b,
                    std::span<const SpinorField<Real>> in, bool dagger) {
  const auto check = [&] {
    check_numbers(out.size(), in.size());
    if (!centre.empty()) check_numbers(out.size(), centre.size());
  };
  if (!out.empty() && has(*this, out.front().sites(), out.size())) {
    check();
  } else {
    collectively(layout.lattice(), check);  // as in job()
  }
  several.clear();
  for (std::size_t f = 0; f < out.size(); ++f) {
    several.push_back({out[f], in[f], dagger, centre.empty() ? nullptr : &centre[f], a, b});
  }
  run(std::span<const HopCall<Real>>(several));
}

template <class Real>
void Hop<Real>::run_in_regions(const HopCall<Real>& call, const ParallelRegion& region) {
  const Job work = job(std::span(&call, 1));
  if (!work.fields.faces) return region([&](int worker) { compute_share(work, worker); });
  Faces<Real>& faces = work.faces();
  faces.begin();
  region([&](int worker) { project(work, worker); });
  faces.start();
  try {
    region([&](int worker) {
      const std::ptrdiff_t rows = row_count(work.part), workers = team->size();
      work.part.put_off[static_cast<std::size_t>(worker)].clear();
      compute_what_can_be(work, worker, rows * worker / workers, rows * (worker + 1) / workers);
    });
  } catch (...) {
    faces.wait();  // what was started must end before another exchange
    throw;
  }
  faces.wait();
  region([&](int worker) { compute_put_off(work, worker); });
}

// Returns the part whose faces `in` has.
template <class Real>
typename Hop<Real>::AtOnce& Hop<Real>::exchanged(const SpinorField<Real>& in) {
  const auto check = [&] {
    if (!(in.layout() == layout)) {
      refuse("in: a field of another layout than the operator's; make it with field()");
    }
  };
  const Sites onto = opposite(in.sites());
  if (has(*this, onto, 1)) {
    check();
  } else {
    collectively(layout.lattice(), check);  // as in job()
  }
  return at_once(onto, 1);
}

template <class Real>
void Hop<Real>::exchange_only(const SpinorField<Real>& in, bool dagger) {
  AtOnce& one = exchanged(in);
  if (!one.faces) return;
  one.faces->begin();
  team->run([&](int worker) {
    one.faces->project(kernels, lanes, in.data(), 0, dagger, worker, team->size());
    team->barrier();
    exchange(*one.faces, worker);
  });
}

template <class Real>
std::int64_t Hop<Real>::exchange_beside(const SpinorField<Real>& in,
                                        const std::function<void()>& work) {
  AtOnce& one = exchanged(in);
  if (!one.faces) return 0;
  Faces<Real>& faces = *one.faces;
  faces.begin();
  faces.project(kernels, lanes, in.data(), 0, false, 0, 1);
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
