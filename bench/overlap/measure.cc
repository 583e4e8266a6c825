// Interleaved, verified samples of the four ways; see measure.hpp.
#include "overlap/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <numeric>

#include "common/statistics.hpp"
#include "common/timed_threads.hpp"
#include "itt/fields.hpp"
#include "overlap/cpu_time.hpp"
#include "overlap/openmp.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/lattice/clover.hpp"
#include "ropewalk/schedule.hpp"

namespace ropewalk::bench {
namespace {

using lattice::CloverOperator;
using lattice::HoppingTerm;
using lattice::Sites;
using lattice::SpinorField;

constexpr double sample_us = 10000;  // so that the barrier between ranks vanishes
// Between nodes: a wire lets through the first millisecond's worth of bytes at once.
constexpr double sample_between_nodes_us = 60000;
constexpr int max_iterations = 500;
// A sample has several exchanges even on a slow network, which lets a first one through faster.
constexpr int min_iterations = 8;
// In a round, a case has a sample each way, and one beside a thread that burns what is left of a
// core; the operator on an undivided lattice takes about as long as one more.
constexpr double samples_a_round = ways + 1.5;
// Assumed when the time is announced: of a thread; and to make the clover term of a site.
constexpr double usual_site_us = 0.1;
constexpr double clover_site_us = 3;

int agreed_threads(const OverlapOptions& options, const Ranks& ranks) {
  const ThreadTeam team(ranks.communicator(), {.threads = options.threads});
  return -static_cast<int>(ranks.max(-team.size()));  // the fewest
}

int lanes_for(const OverlapOptions& options, const std::vector<int>& comm_list) {
  if (options.lanes > 0) return options.lanes;
  const int most = *std::max_element(comm_list.begin(), comm_list.end());
  return std::clamp(most, 1, EndpointSet::max_lanes);  // comm threads beyond them compute
}

// Says how long a sample lasts where there is time enough.
double full_sample_us(const OverlapOptions& options, const Ranks& ranks) {
  const double full = ranks.node_size() == ranks.size() ? sample_us : sample_between_nodes_us;
  return options.common.quick ? full / 3 : full;
}

// What is measured.
struct Frame {
  const OverlapOptions& options;
  const Ranks& ranks;
  const std::vector<IttLayout>& layouts;
  int threads;
  const std::vector<int>& comm_list;
  int lanes;
  int rounds;
  Budget& budget;
  int L;
  std::string op;
  bool mult() const { return op == "mult"; }
  bool half() const { return mult() || op.ends_with("-eo"); }
  Sites to() const { return half() ? Sites::even : Sites::all; }
  Sites from() const { return half() ? Sites::odd : Sites::all; }
  int Ls() const { return op.starts_with("dwf") ? options.Ls : 1; }
};

lattice::OperatorOptions operator_options(const Frame& frame) {
  lattice::OperatorOptions made;
  made.threads = frame.threads;
  return made;
}

// This is for MULT. Links are not near 1, so the clover term is not small; a mass keeps it
// well-conditioned.
constexpr double clover_mass = 1;
constexpr double clover_csw = 1;

// An operator and the fields it works on.
template <class Real>
struct Subject {
  Subject(const Frame& frame, const lattice::Lattice& lattice,
          const lattice::OperatorOptions& options)
      : layout(lattice, sizeof(Real), lattice::Vectors::space, frame.Ls()),
        own(frame.mult()
                ? nullptr
                : std::make_unique<HoppingTerm<Real>>(known_gauge<Real>(lattice), layout, options)),
        clover(frame.mult() ? std::make_unique<CloverOperator<Real>>(
                                  known_gauge<Real>(lattice), clover_mass, clover_csw, options)
                            : nullptr),
        hop(clover ? *clover : *own),
        out(layout, frame.to()),
        in(layout, frame.from()) {
    fill_known(in);
  }
  void step(Way way) {
    if (way == Way::exchange) return hop.exchange_only(in);
    if (way == Way::regions) return step_in_regions();
    hop.set_exchange(way == Way::compute      ? lattice::ExchangeMode::off
                     : way == Way::overlapped ? lattice::ExchangeMode::overlap
                                              : lattice::ExchangeMode::sequential);
    if (clover) return clover->mult(out, in);
    hop.hop(out, in);
  }
  void step_in_regions() {
    const int threads = hop.options().threads;
    hop.hop_in_regions(
        out, in, [&](const std::function<void(int)>& work) { in_parallel_region(threads, work); });
    if (clover) clover->diagonal_inverse(out, out);
  }
  double flops(Sites to) const { return clover ? clover->mult_flops(to) : hop.flops(to); }
  // A times the result of MULT is that of the hop.
  double error() {
    if (clover) clover->diagonal_part(out, out);
    return hop_error(out);
  }
  double time(Way way, int iterations) {
    double waited = 0;
    const double begin = now_us();
    for (int i = 0; i < iterations; ++i) {
      step(way);
      waited += hop.times().wait_us;
    }
    waited_us = waited / iterations;
    return (now_us() - begin) / iterations;
  }

  // Microseconds of an exchange in which the core was not free for the burner.
  double cpu_us(Burner& burner, int iterations) {
    std::int64_t burnt = 0;
    const double begin = now_us();
    for (int i = 0; i < iterations; ++i) {
      burnt += hop.exchange_beside(in, [&] { burner.burn(); });
    }
    const double us = now_us() - begin - static_cast<double>(burnt) * burner.us();
    return std::max(us, 0.0) / iterations;
  }

  lattice::Layout layout;
  std::unique_ptr<HoppingTerm<Real>> own;        // or
  std::unique_ptr<CloverOperator<Real>> clover;  // for MULT
  HoppingTerm<Real>& hop;
  SpinorField<Real> out;
  SpinorField<Real> in;
  double waited_us = 0;  // a step of the last sample
};

template <class Real>
struct Case {
  std::unique_ptr<Subject<Real>> subject;
  OverlapResult result;
};

template <class Real>
class Measuring {
 public:
  Measuring(const Frame& frame, Report& report) : frame_(frame), report_(report) {}

  OverlapResults run(double share, double share_each) {
    frame_.budget.begin();
    OverlapResults results;
    results.ranks = frame_.ranks.size();
    make_cases();
    if (cases_.empty()) return results;
    wanted_us_ = frame_.budget.sample_us(
        full_sample_us(frame_.options, frame_.ranks),
        least_samples(samples_a_round * static_cast<double>(cases_.size())));
    make_alone();
    for (Case<Real>& one : cases_) calibrate(one);
    int rounds = frame_.rounds;
    const double begun = now_us();
    for (int round = 0; round < rounds; ++round) {
      if (round == 1) rounds = frame_.budget.rounds(frame_.rounds, now_us() - begun);
      report_.progress(fmt::format("overlap {} L={} round {}", frame_.op, frame_.L, round + 1),
                       share + share_each * round / rounds);
      time_alone(results.alone);
      for (std::size_t i = 0; i < cases_.size(); ++i) {
        time_case(cases_[(i + static_cast<std::size_t>(round)) % cases_.size()], round);
      }
    }
    for (Case<Real>& one : cases_) {
      check(one);
      one.result.system_us /= rounds;
      one.result.softirq_us /= rounds;
      results.cases.push_back(one.result);
    }
    return results;
  }

 private:
  void make_cases() {
    for (const IttLayout& layout : frame_.layouts) {
      lattice::LatticeOptions options;
      const auto& list = frame_.options.strategy_list;
      options.endpoints.lanes = frame_.lanes;
      options.endpoints.threads =
          std::find(list.begin(), list.end(), Strategy::threaded) != list.end();
      const lattice::Lattice lattice(layout.global(frame_.L), frame_.ranks.communicator(),
                                     layout.rank_grid, options);
      lattice::OperatorOptions how = operator_options(frame_);
      for (const Strategy strategy : list) {
        how.strategy = strategy;
        for (const lattice::FacePrecision faces : frame_.options.faces_list) {
          how.face_precision = faces;
          for (const int comm : frame_.comm_list) {
            how.comm_threads = comm;
            add_case(lattice, how);
          }
        }
      }
    }
  }

  void add_case(const lattice::Lattice& lattice, const lattice::OperatorOptions& options) {
    const Strategy strategy = options.strategy;
    const int comm = options.comm_threads;
    // The library's own threads and copies need no thread of ours but one that looks after them.
    if (comm > 1 && strategy != Strategy::concurrent && strategy != Strategy::sequential) return;
    Case<Real> made;
    made.subject = std::make_unique<Subject<Real>>(frame_, lattice, options);
    try {
      made.subject->step(Way::overlapped);  // makes the exchange
    } catch (const Error& error) {
      const bool alone = frame_.options.strategy_list.size() == 1;
      if (alone || !uses_shared_memory(strategy) || error.code() != ErrorCode::unsupported) throw;
      return;
    }
    OverlapResult& result = made.result;
    result.L = frame_.L;
    result.op = frame_.op;
    result.Ls = frame_.Ls();
    result.rank_grid = lattice.rank_grid();
    result.local = lattice.local();
    result.strategy = made.subject->hop.strategy();
    result.face_precision = options.face_precision;
    result.comm_threads = comm;
    result.lanes = frame_.lanes;
    result.exchange_bytes =
        made.subject->hop.exchanged_bytes() / (frame_.to() == Sites::all ? 1 : 2);
    result.flops = made.subject->flops(frame_.to());
    cases_.push_back(std::move(made));
  }

  void make_alone() {
    const lattice::Lattice undivided(frame_.layouts.front().local(frame_.L));
    alone_ = std::make_unique<Subject<Real>>(frame_, undivided, operator_options(frame_));
    alone_->step(Way::overlapped);
    const double one = alone_->time(Way::overlapped, 3);
    alone_iterations_ = static_cast<int>(
        frame_.ranks.max(std::clamp(wanted_us_ / 3 / one, 1.0, double{max_iterations})));
  }

  void time_alone(AloneResult& result) {
    double sum = 0;
    for (int rank = 0; rank < frame_.ranks.size(); ++rank) {
      frame_.ranks.barrier();
      const bool mine = rank == frame_.ranks.rank();
      if (mine) alone_->step(Way::overlapped);
      sum += frame_.ranks.max(mine ? alone_->time(Way::overlapped, alone_iterations_) : 0);
    }
    result.alone_us.push_back(sum / frame_.ranks.size());
    alone_->step(Way::overlapped);
    frame_.ranks.barrier();
    result.together_us.push_back(
        frame_.ranks.max(alone_->time(Way::overlapped, alone_iterations_)));
  }

  double sample(Case<Real>& one, Way way, int iterations) {
    one.subject->step(way);  // what another case has put out of the caches
    frame_.ranks.barrier();
    return frame_.ranks.max(one.subject->time(way, iterations));
  }

  void time_case(Case<Real>& one, int round) {
    for (std::size_t i = 0; i < ways; ++i) {
      const auto way = static_cast<Way>((i + static_cast<std::size_t>(round)) % ways);
      if (way == Way::regions && !has_openmp()) continue;
      const KernelTime before = kernel_time();
      one.result.us[static_cast<std::size_t>(way)].push_back(
          sample(one, way, one.result.iterations));
      if (way == Way::exchange) add_kernel_time(one, before);
      if (way != Way::overlapped) continue;
      one.result.waited_us.push_back(frame_.ranks.max(one.subject->waited_us));
    }
    if (frame_.threads > 1 || one.result.comm_threads > 0) return;
    frame_.ranks.barrier();
    one.result.cpu_us.push_back(
        frame_.ranks.max(one.subject->cpu_us(burner_, one.result.iterations)));
  }

  // Adds what each exchange of the round and the one before them took; run() makes means of it.
  void add_kernel_time(Case<Real>& one, const KernelTime& before) {
    const KernelTime now = kernel_time();
    const double exchanges = one.result.iterations + 1.0;
    one.result.system_us += frame_.ranks.max(now.system_us - before.system_us) / exchanges;
    one.result.softirq_us += frame_.ranks.max(now.softirq_us - before.softirq_us) / exchanges;
  }

  void calibrate(Case<Real>& one) {
    check(one);
    int iterations = frame_.options.common.quick ? min_iterations / 2 : min_iterations;
    while (iterations < max_iterations &&
           sample(one, Way::one_after_other, iterations) * iterations < wanted_us_) {
      iterations *= 2;
    }
    one.result.iterations = iterations;
  }

  // Overlapped hops against sums written out.
  void check(Case<Real>& one) {
    Subject<Real>& subject = *one.subject;
    for (const Way way : {Way::overlapped, Way::regions}) {
      std::fill_n(subject.out.data(), subject.out.size(), Real(0));
      subject.step(way);
      const double error = frame_.ranks.max(subject.error());
      one.result.error = larger_error(one.result.error, error);
    }
    const bool half = one.result.face_precision == lattice::FacePrecision::half;
    one.result.verified = one.result.error < (half ? 1e-3 : sizeof(Real) == 4 ? 1e-5 : 1e-13);
  }

  const Frame& frame_;
  Report& report_;
  std::vector<Case<Real>> cases_;
  std::unique_ptr<Subject<Real>> alone_;
  int alone_iterations_ = 1;
  double wanted_us_ = 0;  // of a sample
  Burner burner_;
};

}  // namespace

double OverlapResult::median(Way way) const {
  return bench::median(us[static_cast<std::size_t>(way)]);
}
double hidden_share(double compute, double exchange, double both) {
  const double least = std::min(compute, exchange);
  return least > 0 ? (compute + exchange - both) / least : 0;
}
double OverlapResult::hidden() const {
  return hidden_share(median(Way::compute), median(Way::exchange), median(Way::overlapped));
}
double OverlapResult::gain() const {
  const double both = median(Way::overlapped);
  return both > 0 ? median(Way::one_after_other) / both : 0;
}

double OverlapResult::hideable_us() const {
  return std::max(median(Way::exchange) - bench::median(cpu_us), 0.0);
}
double OverlapResult::hidden_of_hideable() const {
  const double least = std::min(median(Way::compute), hideable_us());
  const double hidden = median(Way::compute) + median(Way::exchange) - median(Way::overlapped);
  return least > 0 ? hidden / least : 0;
}

int OverlapResult::faces() const {
  int divided = 0;
  for (const int ranks : rank_grid) divided += ranks > 1 ? 1 : 0;
  return 2 * divided;
}

// A face is the message of one lane, or, where there are more lanes, a part of it that of each; a
// comm thread drives every lane whose number leaves its own as the rest.
bool evenly_dealt(int faces, int lanes, int comm_threads) {
  if (comm_threads <= 1) return true;
  std::vector<int> messages(static_cast<std::size_t>(comm_threads));
  for (int message = 0; message < std::max(faces, lanes); ++message) {
    ++messages[static_cast<std::size_t>(message % lanes % comm_threads)];
  }
  const auto [least, most] = std::minmax_element(messages.begin(), messages.end());
  return *least == *most;
}

double OverlapResults::scaling(const OverlapResult& one) const {
  const double best = std::min(one.median(Way::overlapped), one.median(Way::one_after_other));
  return best > 0 ? ranks * bench::median(alone.alone_us) / best : 0;
}
double OverlapResults::scaling_limit() const {
  const double together = bench::median(alone.together_us);
  return together > 0 ? ranks * bench::median(alone.alone_us) / together : 0;
}

OverlapMeasurement::OverlapMeasurement(const OverlapOptions& options, const Ranks& ranks)
    : options_(options),
      ranks_(ranks),
      layouts_(
          overlap_layouts(options, ranks.size(), static_cast<int>(ranks.max(ranks.node_size())))),
      threads_(agreed_threads(options, ranks)),
      comm_list_(comm_threads(options, threads_)),
      lanes_(lanes_for(options, comm_list_)),
      rounds_(options.common.rounds_or(15, 5)),
      budget_(options.common, ranks, expected()) {}

// What each operator and L will take: beside the sites of a hop, its faces are small.
std::vector<Expected> OverlapMeasurement::expected() const {
  const auto cases = static_cast<double>(layouts_.size() * options_.strategy_list.size() *
                                         options_.faces_list.size() * comm_list_.size());
  const double wanted = full_sample_us(options_, ranks_);
  std::vector<Expected> all;
  for (const std::string& op : options_.operator_list) {
    for (const int L : options_.sizes) {
      const lattice::Extents local = layouts_.front().local(L);
      const double sites = std::accumulate(local.begin(), local.end(), 1.0, std::multiplies<>());
      const double slices = op.starts_with("dwf") ? options_.Ls : 1;
      const bool mult = op == "mult";
      const double half = mult || op.ends_with("-eo") ? 0.5 : 1;
      const double hop = usual_site_us * half * sites * slices / threads_;
      all.push_back(sampling(samples_a_round * cases, rounds_, wanted, min_iterations * hop));
      if (!mult) continue;
      all.back().all_us += clover_site_us * sites * cases;
      all.back().least_us += clover_site_us * sites * cases;
    }
  }
  return all;
}

OverlapResults OverlapMeasurement::measure(int L, const std::string& op, Report& report,
                                           double share, double share_each) {
  const Frame frame{options_, ranks_,  layouts_, threads_, comm_list_,
                    lanes_,   rounds_, budget_,  L,        op};
  if (options_.precision == "double") {
    return Measuring<double>(frame, report).run(share, share_each);
  }
  return Measuring<float>(frame, report).run(share, share_each);
}

}  // namespace ropewalk::bench
