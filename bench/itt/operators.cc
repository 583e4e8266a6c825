// Interleaved, checked calls of operators; see operators.hpp.
#include "itt/operators.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <memory>

#include "common/machine.hpp"
#include "common/parse.hpp"
#include "common/team.hpp"
#include "itt/fields.hpp"
#include "itt/roofline.hpp"

namespace ropewalk::bench {
namespace {

using lattice::HoppingTerm;
using lattice::Sites;

constexpr double full_us = 400000;  // of the timed calls of a case
constexpr double quick_us = 60000;
constexpr int most_calls = 1000;  // as Grid
constexpr int least_calls = 10;
constexpr int warm_up = 3;

template <class Real>
struct Running {
  OperatorCase about;
  std::unique_ptr<HoppingTerm<Real>> hop;
  std::vector<double> us;
  int calls = 1;  // a round
};

template <class Real>
double memory_of(const lattice::Extents& local, const OperatorSpec& spec) {
  double sites = 1;
  for (const int extent : local) sites *= extent;
  // Two spinor fields, the caller's links and two copies of them in each way of keeping them.
  return sites * sizeof(Real) * (2 * 24.0 * spec.Ls + 72 + 4 * 144);
}

template <class Real>
class Operators {
 public:
  Operators(const OperatorContext& context, int L, const lattice::Lattice& lattice)
      : context_(context), L_(L), lattice_(lattice), gauge_(known_gauge<Real>(lattice)) {}

  OperatorResult measure(const OperatorSpec& spec, Report& report, double share) {
    OperatorResult result;
    result.spec = spec;
    result.L = L_;
    result.local = lattice_.local();
    result.left_out = refusal(spec);
    if (!result.left_out.empty()) return result;
    const lattice::Layout layout(lattice_, sizeof(Real), spec.vectors, spec.Ls);
    std::vector<Running<Real>> all = cases(layout);
    const Sites to = spec.even_odd ? Sites::even : Sites::all;
    lattice::SpinorField<Real> out(layout, to);
    lattice::SpinorField<Real> in(layout, spec.even_odd ? Sites::odd : Sites::all);
    fill_known(in);
    const HoppingTerm<Real>& first = *all.front().hop;
    result.flops = first.flops(to) * context_.ranks.size();
    result.bytes = first.bytes(to);
    result.isa = first.isa();
    for (Running<Real>& one : all) {
      std::fill_n(out.data(), out.size(), Real(0));
      calibrate(one, out, in);
      result.error = std::max(result.error, context_.ranks.max(hop_error(out)));
    }
    result.strategy = name(first.strategy());
    result.verified = result.error < (sizeof(Real) == 4 ? 1e-5 : 1e-13);
    result.bandwidth_mb = context_.ranks.sum(
        bandwidth_mb_per_s(context_.team, static_cast<std::size_t>(result.bytes)));
    result.peak_gflops = context_.peak_gflops;
    const int rounds = context_.options.common.rounds_or(10, 3);
    for (int round = 0; round < rounds; ++round) {
      report.progress(fmt::format("{} L={} round {}", spec.name, L_, round + 1), share);
      for (std::size_t i = 0; i < all.size(); ++i) {
        time_calls(all[(i + static_cast<std::size_t>(round)) % all.size()], out, in);
      }
    }
    for (Running<Real>& one : all) {
      one.about.us = summarize(slowest_calls(one.us));
      result.cases.push_back(one.about);
    }
    return result;
  }

 private:
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

  std::vector<Running<Real>> cases(const lattice::Layout& layout) {
    std::vector<Running<Real>> all;
    for (const lattice::Links links : {lattice::Links::full, lattice::Links::two_rows}) {
      for (const lattice::Exchange exchange : context_.options.exchange_list) {
        lattice::OperatorOptions options;
        options.exchange = exchange;
        options.threads = context_.threads;
        options.links = links;
        all.push_back({{name(links), name(exchange), {}},
                       std::make_unique<HoppingTerm<Real>>(gauge_, layout, options),
                       {},
                       1});
        // Without other ranks there is no difference.
        if (context_.ranks.size() == 1) break;
      }
    }
    return all;
  }

  void calibrate(Running<Real>& one, lattice::SpinorField<Real>& out,
                 const lattice::SpinorField<Real>& in) {
    for (int call = 0; call < warm_up; ++call) one.hop->hop(out, in);
    const double begin = now_us();
    one.hop->hop(out, in);
    const double time = context_.ranks.max(now_us() - begin);
    const int rounds = context_.options.common.rounds_or(10, 3);
    const double budget = context_.options.common.quick ? quick_us : full_us;
    const int all = context_.options.calls > 0
                        ? context_.options.calls
                        : std::clamp(static_cast<int>(budget / time), least_calls, most_calls);
    one.calls = (all + rounds - 1) / rounds;
  }

  void time_calls(Running<Real>& one, lattice::SpinorField<Real>& out,
                  const lattice::SpinorField<Real>& in) {
    one.hop->hop(out, in);  // what another case has put out of the caches
    context_.ranks.barrier();
    for (int call = 0; call < one.calls; ++call) {
      const double begin = now_us();
      one.hop->hop(out, in);
      one.us.push_back(now_us() - begin);
    }
  }

  std::vector<double> slowest_calls(const std::vector<double>& us) const {
    std::vector<double> slowest(us.size(), 0.0);
    for (const std::vector<double>& rank : context_.ranks.gather(us)) {
      for (std::size_t call = 0; call < us.size(); ++call) {
        slowest[call] = std::max(slowest[call], rank[call]);
      }
    }
    return slowest;
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
                                        double share, double share_each) {
  const lattice::Lattice lattice = make_lattice(context, L);
  Operators<Real> operators(context, L, lattice);
  std::vector<OperatorResult> results;
  for (const OperatorSpec& spec : specs) {
    results.push_back(operators.measure(spec, report, share));
    share += share_each / static_cast<double>(specs.size());
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
double OperatorResult::intensity(int ranks) const { return flops / ranks / bytes; }
double OperatorResult::roof_gflops(int ranks) const {
  return std::min(peak_gflops, intensity(ranks) * bandwidth_mb / 1e3);
}

std::vector<OperatorResult> measure_operators(const OperatorContext& context, int L,
                                              const std::vector<OperatorSpec>& specs,
                                              Report& report, double share, double share_each) {
  if (context.options.precision == "double") {
    return measure_all<double>(context, L, specs, report, share, share_each);
  }
  return measure_all<float>(context, L, specs, report, share, share_each);
}

}  // namespace ropewalk::bench
