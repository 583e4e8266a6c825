// Interleaved, checked calls of operators; see operators.hpp.
#include "itt/operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <numeric>

#include "common/machine.hpp"
#include "common/parse.hpp"
#include "common/timed_threads.hpp"
#include "itt/fields.hpp"
#include "ropewalk/lattice/clover.hpp"

namespace ropewalk::bench {
namespace {

using lattice::HoppingTerm;
using lattice::Sites;

constexpr double full_us = 400000;  // of the timed calls of a case
constexpr double quick_us = 60000;
constexpr int most_calls = 1000;  // as Grid
constexpr int least_calls = 10;
constexpr int warm_up = 3;
// What is assumed when the time is announced: the speed of a thread, the share of a part that
// making fields takes, and the time for the inverse clover term of a site.
constexpr double usual_mflops = 12e3;
constexpr double share_of_set_up = 0.3;
constexpr double clover_site_us = 3;

double full_calls_us(const IttOptions& options) {
  return options.common.quick ? quick_us : full_us;
}

// This is for MULT. Links are not near 1, so the clover term is not small; a mass keeps A
// well-conditioned.
constexpr double clover_mass = 1;
constexpr double clover_csw = 1;

// Of all right-hand sides; they are alike.
template <class Real>
struct Fields {
  Fields(const lattice::Layout& layout, const OperatorSpec& spec) {
    for (int f = 0; f < spec.fields; ++f) {
      out.emplace_back(layout, spec.even_odd ? Sites::even : Sites::all);
      in.emplace_back(layout, spec.even_odd ? Sites::odd : Sites::all);
      fill_known(in.back());
    }
  }
  void forget() {
    for (lattice::SpinorField<Real>& one : out) std::fill_n(one.data(), one.size(), Real(0));
  }
  std::vector<lattice::SpinorField<Real>> out;
  std::vector<lattice::SpinorField<Real>> in;
};

template <class Real>
struct Running {
  OperatorCase about;
  std::unique_ptr<HoppingTerm<Real>> hop;  // or
  std::unique_ptr<lattice::CloverOperator<Real>> clover;
  std::vector<double> us;
  int calls = 1;  // a round

  const HoppingTerm<Real>& term() const { return clover ? *clover : *hop; }
  void call(Fields<Real>& fields) {
    if (clover) return clover->mult(fields.out, fields.in);
    if (fields.out.size() > 1) return hop->hop(fields.out, fields.in);
    hop->hop(fields.out.front(), fields.in.front());
  }
  // A times the result of MULT is that of the hop.
  double error(Fields<Real>& fields) {
    double most = 0;
    for (lattice::SpinorField<Real>& out : fields.out) {
      if (clover) clover->diagonal_part(out, out);
      most = larger_error(most, hop_error(out));
    }
    return most;
  }
  double error_allowed() const {
    if (term().options().face_precision == lattice::FacePrecision::half) return 1e-3;
    return sizeof(Real) == 4 ? 1e-5 : 1e-13;
  }
};

// The two blocks of the clover term, or of their inverses, have so many reals at a site.
constexpr double clover_reals = 72;

template <class Real>
double memory_of(const lattice::Extents& local, const OperatorSpec& spec) {
  double sites = 1;
  for (const int extent : local) sites *= extent;
  const double bandwidth = 12e7;
  // Two spinor fields, the caller's links and two copies of them in each way of keeping them.
  const double numbers =
      2 * 24.0 * spec.Ls * spec.fields + 72 + 4 * 144 + (spec.clover ? 4 * clover_reals : 0);
  return sites * sizeof(Real) * numbers + bandwidth;
}

template <class Real>
class Operators {
 public:
  Operators(const OperatorContext& context, int L, const lattice::Lattice& lattice)
      : context_(context), L_(L), lattice_(lattice), gauge_(known_gauge<Real>(lattice)) {}

  OperatorResult measure(const OperatorSpec& spec, Report& report, Share share) {
    context_.budget.begin();
    OperatorResult result;
    result.spec = spec;
    result.L = L_;
    result.local = lattice_.local();
    result.left_out = refusal(spec);
    if (!result.left_out.empty()) return result;
    report.progress(fmt::format("{} L={}", spec.name, L_), share.at(0));
    const lattice::Layout layout(lattice_, sizeof(Real), spec.vectors, spec.Ls);
    std::vector<Running<Real>> all = cases(spec, layout);
    Fields<Real> fields(layout, spec);
    describe(result, layout, all.front());
    const double calls_us = context_.budget.sample_us(
        full_calls_us(context_.options), static_cast<double>(all.size()) * (1 + share_of_set_up));
    result.verified = true;
    for (Running<Real>& one : all) {
      fields.forget();
      calibrate(one, fields, calls_us);
      const double error = context_.ranks.max(one.error(fields));
      result.verified = result.verified && error < one.error_allowed();
      result.error = larger_error(result.error, error);
    }
    result.strategy = name(all.front().term().strategy());
    time_rounds(all, fields, report, {share.at(0.2), 0.8 * share.width}, spec.name);
    for (Running<Real>& one : all) {
      one.about.us = summarize(context_.ranks.slowest(one.us));
      one.about.bandwidth_mb = context_.bandwidth.best_mb_per_s(one.about.bytes);
      result.cases.push_back(one.about);
    }
    return result;
  }

 private:
  void describe(OperatorResult& result, const lattice::Layout& layout, const Running<Real>& one) {
    double sites = static_cast<double>(lattice_.local_sites()) * result.spec.Ls;
    if (result.spec.even_odd) sites /= 2;
    sites *= result.spec.fields;
    result.flops = result.spec.flops_a_site() * sites * context_.ranks.size();
    result.isa = one.term().isa();
    result.vector_lanes = layout.lanes();
    result.peak_gflops = context_.peak_gflops;
  }

  void time_rounds(std::vector<Running<Real>>& all, Fields<Real>& fields, Report& report,
                   Share share, const std::string& title) {
    const int wanted = context_.options.common.rounds_or(10, 3);
    int rounds = wanted;
    const double begun = now_us();
    for (int round = 0; round < rounds; ++round) {
      if (round == 1) rounds = context_.budget.rounds(wanted, now_us() - begun);
      report.progress(fmt::format("{} L={} round {}", title, L_, round + 1),
                      share.of(round, rounds).begin);
      for (std::size_t i = 0; i < all.size(); ++i) {
        time_calls(all[(i + static_cast<std::size_t>(round)) % all.size()], fields);
      }
      if (round % 2 == 0) sample_bandwidth(all);
    }
  }

  // Samples the bandwidth once for each number of bytes.
  void sample_bandwidth(const std::vector<Running<Real>>& all) {
    std::vector<double> done;
    for (const Running<Real>& one : all) {
      const double bytes = std::min(one.about.bytes, Bandwidth::most_bytes);
      if (std::find(done.begin(), done.end(), bytes) != done.end()) continue;
      context_.bandwidth.sample(bytes);
      done.push_back(bytes);
    }
  }

  std::string refusal(const OperatorSpec& spec) const {
    const double wanted = memory_of<Real>(lattice_.local(), spec) * context_.ranks.node_size();
    const auto available = static_cast<double>(available_memory());
    if (!context_.ranks.all(available == 0 || wanted < 0.8 * available)) {
      return fmt::format("needs {} a node, more than is free",
                         size_text(static_cast<std::size_t>(wanted)));
    }
    try {
      (void)lattice::Layout(lattice_, sizeof(Real), spec.vectors, spec.Ls);
    } catch (const Error& error) {  // the same on all ranks
      return error.what();
    }
    return "";
  }

  std::vector<Running<Real>> cases(const OperatorSpec& spec, const lattice::Layout& layout) {
    std::vector<Running<Real>> all;
    // The clover term takes long to make: only the links that the library would choose.
    const std::vector<lattice::Links> links =
        spec.clover ? std::vector{lattice::Links::automatic}
                    : std::vector{lattice::Links::full, lattice::Links::two_rows};
    for (const lattice::Links kept : links) {
      for (const lattice::OperatorOptions& how : exchanges()) {
        lattice::OperatorOptions options = how;
        options.links = kept;
        Running<Real> made = running(spec, layout, options);
        // Vectors over the fifth dimension have only one way of keeping links.
        const bool again = std::any_of(all.begin(), all.end(), [&](const Running<Real>& one) {
          return one.about.links == made.about.links && one.about.exchange == made.about.exchange;
        });
        if (again) return all;
        all.push_back(std::move(made));
      }
    }
    return all;
  }

  // One rank alone exchanges nothing, so all ways are the same.
  std::vector<lattice::OperatorOptions> exchanges() const {
    std::vector<lattice::OperatorOptions> out;
    for (const lattice::FacePrecision faces : context_.options.faces_list) {
      for (const lattice::ExchangeMode exchange : context_.options.exchange_list) {
        if (context_.ranks.size() == 1 && !out.empty()) return out;
        out.emplace_back();
        out.back().exchange = exchange;
        out.back().face_precision = faces;
        out.back().threads = context_.threads;
      }
    }
    return out;
  }

  Running<Real> running(const OperatorSpec& spec, const lattice::Layout& layout,
                        const lattice::OperatorOptions& options) {
    Running<Real> made;
    if (spec.clover) {
      made.clover =
          std::make_unique<lattice::CloverOperator<Real>>(gauge_, clover_mass, clover_csw, options);
    } else {
      made.hop = std::make_unique<HoppingTerm<Real>>(gauge_, layout, options);
    }
    made.about.links = name(made.term().links());
    made.about.exchange = name(options.exchange);
    if (options.face_precision == lattice::FacePrecision::half) made.about.exchange += "/half";
    made.about.bytes = made.term().bytes(spec.even_odd ? Sites::even : Sites::all, spec.fields);
    if (spec.clover) {
      made.about.bytes +=
          clover_reals * sizeof(Real) * static_cast<double>(lattice_.local_sites()) / 2;
    }
    made.about.level = level_of(context_.levels, made.about.bytes).name;
    return made;
  }

  void calibrate(Running<Real>& one, Fields<Real>& fields, double calls_us) {
    for (int call = 0; call < warm_up; ++call) one.call(fields);
    const double begin = now_us();
    one.call(fields);
    const double time = context_.ranks.max(now_us() - begin);
    const int rounds = context_.options.common.rounds_or(10, 3);
    const int all = context_.options.calls > 0
                        ? context_.options.calls
                        : std::clamp(static_cast<int>(calls_us / time), least_calls, most_calls);
    one.calls = (all + rounds - 1) / rounds;
  }

  void time_calls(Running<Real>& one, Fields<Real>& fields) {
    one.call(fields);  // what another case has put out of the caches
    context_.ranks.barrier();
    for (int call = 0; call < one.calls; ++call) {
      const double begin = now_us();
      one.call(fields);
      one.us.push_back(now_us() - begin);
    }
  }

  const OperatorContext& context_;
  int L_;
  const lattice::Lattice& lattice_;
  lattice::GaugeField<Real> gauge_;
};

lattice::Lattice make_lattice(const OperatorContext& context, int L) {
  const lattice::Extents global = context.layout.global(L);
  if (!context.ranks.has_mpi()) return lattice::Lattice(global);
  lattice::LatticeOptions options;
  options.endpoints.lanes = context.options.lanes;
  options.endpoints.threads = context.options.lanes > 1;
  return {global, context.ranks.communicator(), context.layout.rank_grid, options};
}

template <class Real>
std::vector<OperatorResult> measure_all(const OperatorContext& context, int L,
                                        const std::vector<OperatorSpec>& specs, Report& report,
                                        Share share) {
  const lattice::Lattice lattice = make_lattice(context, L);
  Operators<Real> operators(context, L, lattice);
  std::vector<OperatorResult> results;
  for (const OperatorSpec& spec : specs) {
    const auto index = static_cast<int>(results.size());
    const auto count = static_cast<int>(specs.size());
    results.push_back(operators.measure(spec, report, share.of(index, count)));
  }
  return results;
}

}  // namespace

double OperatorResult::mflops(const OperatorCase& one) const { return flops / one.us.mean; }
double OperatorResult::median_mflops(const OperatorCase& one) const {
  return flops / one.us.median;
}
const OperatorCase& OperatorResult::best() const {
  return *std::min_element(cases.begin(), cases.end(),
                           [](const auto& a, const auto& b) { return a.us.mean < b.us.mean; });
}
const OperatorCase& OperatorResult::worst() const {
  return *std::max_element(cases.begin(), cases.end(),
                           [](const auto& a, const auto& b) { return a.us.mean < b.us.mean; });
}
double OperatorResult::robustness() const { return mflops(worst()) / mflops(best()); }
double OperatorResult::error_mflops(const OperatorCase& one) const {
  return flops / one.us.min * one.us.error / one.us.mean;
}
double OperatorResult::intensity(const OperatorCase& one, int ranks) const {
  return flops / ranks / one.bytes;
}
double OperatorResult::roof_gflops(const OperatorCase& one, int ranks) const {
  return std::min(peak_gflops, intensity(one, ranks) * one.bandwidth_mb / 1e3);
}
bool OperatorResult::bound_by_peak(const OperatorCase& one, int ranks) const {
  return peak_gflops <= intensity(one, ranks) * one.bandwidth_mb / 1e3;
}

Expected expected_operator(const IttOptions& options, const lattice::Extents& local, int ranks,
                           int threads, const OperatorSpec& spec) {
  const double volume = std::accumulate(local.begin(), local.end(), 1.0, std::multiplies<>());
  const double sites = volume * spec.Ls * spec.fields / (spec.even_odd ? 2 : 1);
  const double call = sites * spec.flops_a_site() / usual_mflops / threads;
  const int rounds = options.common.rounds_or(10, 3);
  const auto ways = static_cast<double>(options.exchange_list.size() * options.faces_list.size());
  const double exchanges = ranks > 1 ? ways : 1;
  const double links = spec.clover || spec.vectors == lattice::Vectors::fifth ? 1 : 2;
  const double set_up = spec.clover ? clover_site_us * volume : 0;
  const auto part = [&](double us, int times) {
    const double calls = std::max(us, times * call) + (times + warm_up) * call;
    return links * exchanges * (1 + share_of_set_up) * calls + set_up;
  };
  const double full = full_calls_us(options);
  return {part(full, std::max(rounds, least_calls)),
          part(Budget::least_share_of_sample * full, Budget::least_rounds)};
}

std::vector<OperatorResult> measure_operators(const OperatorContext& context, int L,
                                              const std::vector<OperatorSpec>& specs,
                                              Report& report, Share share) {
  if (context.options.precision == "double") {
    return measure_all<double>(context, L, specs, report, share);
  }
  return measure_all<float>(context, L, specs, report, share);
}

}  // namespace ropewalk::bench
