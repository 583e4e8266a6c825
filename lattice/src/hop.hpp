// The engine under every operator: tables, links, faces and threads of one gauge field and layout.
#pragma once

#include <cstdint>
#include <functional>
#include <memory>
#include <vector>

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

  void run(const HopCall<Real>&);
  void exchange_only(const SpinorField<Real>& in, bool dagger);
  std::int64_t exchange_beside(const SpinorField<Real>& in, const std::function<void()>& work);

  // What a hop onto one set of sites needs; made at its first use.
  struct Part {
    HopTable table;
    const Real* links = nullptr;
    const kernels::HopFunction<Real>* kernel = nullptr;  // by dagger
    std::unique_ptr<Faces<Real>> faces;
    std::unique_ptr<WorkStealing> loop;  // over the rows
    std::vector<PutOff> put_off;         // by worker
  };
  // A hop as the workers see it.
  struct Job {
    Part& part;
    kernels::HopArguments<Real> arguments;
    kernels::HopFunction<Real> kernel;
    const Real* in;
    bool dagger;
  };
  Part& part(Sites sites);
  std::unique_ptr<Part> make_part(Sites sites);
  void check(const HopCall<Real>&) const;
  Job job(const HopCall<Real>&);
  Part& exchanged_part(const SpinorField<Real>& in);
  kernels::HopArguments<Real> arguments(const Part&, const HopCall<Real>&) const;

  // The share of one worker.
  void project(const Job&, int worker);
  void compute_share(const Job&, int worker);
  void compute_what_can_be(const Job&, int worker, std::ptrdiff_t begin, std::ptrdiff_t end);
  void compute_put_off(const Job&, int worker);
  void exchange(Part&, int worker);
  void compute_and_poll(const Job&);
  void overlap(const Job&, int worker);
  double waited_us(const Part&, double projected) const;
  // The work of all workers together.
  void one_after_other(const Job&);
  void overlapped(const Job&);

  Layout layout;
  OperatorOptions options;
  const kernels::OperatorTable<Real>& kernels;
  kernels::LaneTables<Real> lanes;
  OperatorLinks<Real> links;
  std::shared_ptr<ThreadTeam> team;  // of the lattice
  std::unique_ptr<Part> parts[3];    // by Sites
  int sharers;                       // ranks that share a cache with this one, itself included
  Strategy strategy;                 // of the exchange, once there is one
  HopTimes times;
};

extern template struct Hop<float>;
extern template struct Hop<double>;

}  // namespace ropewalk::lattice::detail
