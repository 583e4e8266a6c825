// The engine under every operator: tables, links, faces and threads of one gauge field and layout.
#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <span>
#include <vector>

#include "agree.hpp"
#include "exchange.hpp"
#include "kernels/kernels.hpp"
#include "links.hpp"
#include "ropewalk/lattice/operators.hpp"
#include "ropewalk/schedule.hpp"
#include "tables.hpp"

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

// Rows that a worker has put off until the faces are there: runs of neighbouring ones, in order.
class PutOff {
 public:
  struct Run {
    std::ptrdiff_t begin;
    std::ptrdiff_t end;
  };
  void reserve(std::ptrdiff_t rows) { runs_.reserve(static_cast<std::size_t>(rows)); }
  void clear() noexcept { runs_.clear(); }
  void add(std::ptrdiff_t begin, std::ptrdiff_t end) {
    if (!runs_.empty() && runs_.back().end == begin) {
      runs_.back().end = end;
    } else {
      runs_.push_back({begin, end});
    }
  }
  const std::vector<Run>& runs() const noexcept { return runs_; }

  // When this worker had nothing left to compute before the faces; 0: it computed nothing.
  double idle_since_us = 0;

 private:
  alignas(128) std::vector<Run> runs_;  // each worker writes its own
};

template <class Real>
struct Hop {
  Hop(const GaugeField<Real>&, const Layout&, const OperatorOptions&);

  void run(const HopCall<Real>& call) { run(std::span<const HopCall<Real>>(&call, 1)); }
  // Several fields at once, which differ in nothing but the fields.
  void run(std::span<const HopCall<Real>>);
  // The same; without centres where these are none.
  void run(std::span<SpinorField<Real>> out, double a, std::span<const SpinorField<Real>> centre,
           double b, std::span<const SpinorField<Real>> in, bool dagger);
  void run_in_regions(const HopCall<Real>&, const ParallelRegion&);
  void exchange_only(const SpinorField<Real>& in, bool dagger);
  std::int64_t exchange_beside(const SpinorField<Real>& in, const std::function<void()>& work);

  // What a hop of so many fields at once needs besides.
  struct AtOnce {
    std::unique_ptr<Faces<Real>> faces;  // null where no dimension is divided
    std::unique_ptr<WorkStealing> loop;  // over the rows
    std::vector<kernels::HopArguments<Real>> arguments;
  };
  // What a hop onto one set of sites needs; made at its first use.
  struct Part {
    HopTable table;
    const Real* links = nullptr;
    const kernels::HopFunction<Real>* kernel = nullptr;  // by dagger
    std::map<std::size_t, AtOnce> at_once;               // by the number of fields
    std::vector<PutOff> put_off;                         // by worker
  };
  // A hop as the workers see it.
  struct Job {
    Part& part;
    AtOnce& fields;
    kernels::HopFunction<Real> kernel;
    bool dagger;

    Faces<Real>& faces() const { return *fields.faces; }
    void compute(std::ptrdiff_t begin, std::ptrdiff_t end) const {
      kernel(fields.arguments.data(), static_cast<int>(fields.arguments.size()), begin, end);
    }
  };
  AtOnce& at_once(Sites sites, std::size_t fields);
  std::unique_ptr<Part> make_part(Sites sites);
  AtOnce make_at_once(Part&, std::size_t fields);
  void check(const HopCall<Real>&) const;
  void check(std::span<const HopCall<Real>>) const;
  Job job(std::span<const HopCall<Real>>);
  AtOnce& exchanged(const SpinorField<Real>& in);
  kernels::HopArguments<Real> arguments(const Part&, const AtOnce&, const HopCall<Real>&,
                                        std::size_t field) const;

  // The share of one worker.
  void project(const Job&, int worker);
  void compute_share(const Job&, int worker);
  void compute_what_can_be(const Job&, int worker, std::ptrdiff_t begin, std::ptrdiff_t end);
  void compute_put_off(const Job&, int worker);
  void exchange(Faces<Real>&, int worker);
  void compute_and_poll(const Job&);
  void overlap(const Job&, int worker);
  double waited_us(const Job&, double projected) const;
  // The work of all workers together.
  void one_after_other(const Job&);
  void overlapped(const Job&);

  Layout layout;
  OperatorOptions options;
  const kernels::OperatorTable<Real>& kernels;
  kernels::LaneTables<Real> lanes;
  OperatorLinks<Real> links;
  std::shared_ptr<ThreadTeam> team;    // of the lattice
  std::unique_ptr<Part> parts[3];      // by Sites
  std::vector<HopCall<Real>> several;  // of the last hop of several fields, kept for its memory
  int sharers;                         // ranks that share a cache with this one, itself included
  Strategy strategy;                   // of the exchange, once there is one
  HopTimes times;
};

// Throws Error(argument) on this rank unless there are as many fields to write as to read.
void check_numbers(std::size_t out, std::size_t in);
// Throws likewise, and where one of `out` is one of `in`.
template <class Real>
void check_distinct(std::span<SpinorField<Real>> out, std::span<const SpinorField<Real>> in) {
  check_numbers(out.size(), in.size());
  for (const SpinorField<Real>& to : out) {
    for (const SpinorField<Real>& from : in) {
      if (to.data() != from.data()) continue;
      throw Error(ErrorCode::argument, "out: the same field as in, expected another");
    }
  }
}

// Collective at its first use for these sites and so many fields: the fields between the two hops
// of a Schur complement.
template <class Real>
std::span<SpinorField<Real>> between(std::vector<SpinorField<Real>>& made, const Layout& layout,
                                     Sites sites, std::size_t fields) {
  if (made.size() < fields || made.front().sites() != sites) {
    made = made_collectively(layout.lattice(), [&] {
      std::vector<SpinorField<Real>> fresh;
      for (std::size_t f = 0; f < fields; ++f) fresh.emplace_back(layout, sites);
      return fresh;
    });
  }
  return std::span(made).first(fields);
}

extern template struct Hop<float>;
extern template struct Hop<double>;

}  // namespace ropewalk::lattice::detail
