// Memory and stencil tables; see comms.hpp.
#include "itt/comms.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/machine.hpp"
#include "common/parse.hpp"
#include "common/timed_threads.hpp"
#include "comms/faces.hpp"
#include "memory/triad.hpp"
#include "ropewalk/error.hpp"
#include "ropewalk/halo.hpp"

namespace ropewalk::bench {
namespace {

constexpr int numbers_a_site = 8;
constexpr int stencil_Ls = 8;
constexpr double memory_us = 250000;  // of the passes of one size
constexpr double quick_memory_us = 20000;
constexpr int most_exchanges = 200;  // as Grid
constexpr double stencil_us = 400000;
constexpr double quick_stencil_us = 50000;
// What is assumed when the time is announced: a rate of memory, the share of a part that making its
// arrays takes, and how many times stencil_us a part of that table takes: two halos, the ways to
// copy, and half of it for each kind of step.
constexpr double usual_mb_per_s = 8000;
constexpr double share_of_set_up = 0.3;
constexpr double stencil_columns = 5;

double full_memory_us(const IttOptions& options) {
  return options.common.quick ? quick_memory_us : memory_us;
}
double full_stencil_us(const IttOptions& options) {
  return options.common.quick ? quick_stencil_us : stencil_us;
}

std::vector<int> stepped(int low, int high) {
  std::vector<int> all;
  for (int L = low; L <= high; L += 4) all.push_back(L);
  return all;
}

double sites(int L) { return std::pow(L, 4); }

template <class Real>
class Axpy {
 public:
  Axpy(ThreadTeam& team, int L)
      : team_(team), count_(static_cast<std::size_t>(sites(L)) * numbers_a_site) {
    for (Buffer<Real>* array : {&x_, &y_, &z_}) *array = Buffer<Real>(count_ + 64);
    team_.run([&](int worker) {
      const auto [begin, end] = part(worker);
      for (std::size_t i = begin; i < end; ++i) {
        x_[i] = static_cast<Real>(i & 1023U);
        y_[i] = static_cast<Real>(i % 7);
      }
    });
  }
  double pass_us(int passes) {
    const double begin = now_us();
    team_.run([&](int worker) {
      const auto [first, last] = part(worker);
      for (int pass = 0; pass < passes; ++pass) {
        triad(z_.data() + first, x_.data() + first, y_.data() + first, Real(3), last - first,
              Stores::plain);
      }
    });
    return (now_us() - begin) / passes;
  }
  bool right() const {
    for (std::size_t i = 0; i < count_; i += 97) {
      if (z_[i] != 3 * x_[i] + y_[i]) return false;
    }
    return true;
  }

 private:
  std::pair<std::size_t, std::size_t> part(int worker) const {
    const auto workers = static_cast<std::size_t>(team_.size());
    const auto w = static_cast<std::size_t>(worker);
    const std::size_t lines = count_ / 16;  // of 64 bytes for floats
    return {lines * w / workers * 16, w + 1 == workers ? count_ : lines * (w + 1) / workers * 16};
  }
  ThreadTeam& team_;
  std::size_t count_;
  Buffer<Real> x_;
  Buffer<Real> y_;
  Buffer<Real> z_;
};

template <class Real>
MemoryResult measure_size(const IttOptions& options, const Ranks& ranks, ThreadTeam& team,
                          Budget& budget, int L) {
  MemoryResult result;
  result.L = L;
  result.bytes = memory_bytes(L, ranks.size(), sizeof(Real) == 8);
  result.flops = memory_flops(L, ranks.size());
  Axpy<Real> axpy(team, L);
  axpy.pass_us(1);
  const double one = ranks.max(axpy.pass_us(2));
  const int wanted = options.common.rounds_or(20, 5);
  const double passes_us = budget.sample_us(full_memory_us(options), 1 + share_of_set_up);
  const int passes = std::clamp(static_cast<int>(passes_us / one / wanted), 1, 100000);
  std::vector<double> us;
  int samples = wanted;
  const double begun = now_us();
  for (int sample = 0; sample < samples; ++sample) {
    if (sample == 1) samples = budget.rounds(wanted, now_us() - begun);
    ranks.barrier();
    us.push_back(ranks.max(axpy.pass_us(passes)));
  }
  result.passes = passes * samples;
  result.us = summarize(us);
  result.verified = ranks.all(axpy.right());
  return result;
}

bool fits(const Ranks& ranks, double bytes_a_rank) {
  const auto available = static_cast<double>(available_memory());
  return ranks.all(available == 0 || bytes_a_rank * ranks.node_size() < 0.8 * available);
}

// Checks the user's bound on the memory for messages.
void check_shm(const IttOptions& options, int L, std::size_t bytes) {
  if (options.shm == 0 || bytes <= static_cast<std::size_t>(options.shm) << 20) return;
  throw Error(ErrorCode::argument,
              fmt::format("--shm: {} MB, but the faces of L={}, Ls={} take {} MB; give as much, or "
                          "0 for what they need",
                          options.shm, L, stencil_Ls, (bytes >> 20) + 1));
}

EndpointOptions endpoint_options(const IttOptions& options) {
  EndpointOptions made;
  made.lanes = options.lanes;
  made.threads = options.lanes > 1;
  return made;
}

// Single exchanges, each as long as its slowest rank takes.
std::vector<double> exchange_times(Halo& halo, const Ranks& ranks, int count) {
  std::vector<double> mine;
  halo.exchange();  // what another has put out of the caches
  ranks.barrier();
  for (int i = 0; i < count; ++i) {
    const double begin = now_us();
    halo.exchange();
    mine.push_back(now_us() - begin);
  }
  return ranks.slowest(mine);
}

// The copy that each exchange must at least make, on the same buffers, by all ranks at once: a
// sample of each way to copy.
void time_copies(const FaceBuffers& buffers, const Ranks& ranks, int count,
                 std::vector<std::vector<double>>& us) {
  const std::vector<CopyWay> ways = copy_ways();
  us.resize(ways.size());
  for (std::size_t way = 0; way < ways.size(); ++way) {
    buffers.copy(0, ways[way]);
    ranks.barrier();
    const double begin = now_us();
    for (int i = 0; i < count; ++i) buffers.copy(0, ways[way]);
    us[way].push_back(ranks.max((now_us() - begin) / count));
  }
}

Summary fastest(const std::vector<std::vector<double>>& ways) {
  Summary best;
  for (const std::vector<double>& us : ways) {
    const Summary one = summarize(us);
    if (best.n == 0 || one.median < best.median) best = one;
  }
  return best;
}

StencilResult measure_faces(const IttOptions& options, const Ranks& ranks,
                            const CartesianGrid& grid, EndpointSet& endpoints,
                            const LocalLattice& lattice, FaceBuffers& buffers, double us_each,
                            std::uint64_t& serial) {
  StencilResult result;
  Halo halo(grid, endpoints, buffers.packets(0), {Strategy::automatic, Corners::no});
  Halo plain(grid, endpoints, buffers.packets(0), {Strategy::concurrent, Corners::no});
  result.strategy = name(halo.strategy());
  const double one = summarize(exchange_times(plain, ranks, 3)).median;
  const int rounds = options.common.rounds_or(10, 5);
  const int most = std::min(most_exchanges / rounds, static_cast<int>(us_each / one / rounds));
  std::vector<double> us[2];
  std::vector<std::vector<double>> copies;
  for (int round = 0; round < rounds; ++round) {
    for (const std::size_t which : {0U, 1U}) {
      buffers.fill(++serial);
      const auto more = exchange_times(which == 0 ? halo : plain, ranks, std::max(1, most));
      us[which].insert(us[which].end(), more.begin(), more.end());
      if (result.wrong.empty()) result.wrong = buffers.check(serial);
    }
    time_copies(buffers, ranks, std::max(1, most), copies);
  }
  result.us = summarize(us[0]);
  result.plain_us = summarize(us[1]);
  result.limit_us = fastest(copies);
  StepOptions steps;
  steps.samples = 2 * rounds;
  steps.sample_us = options.common.quick ? steps.sample_us / 5 : steps.sample_us;
  steps.budget_us = us_each / 2;
  result.step = measure_steps(steps, ranks, grid, endpoints, lattice);
  if (result.wrong.empty()) result.wrong = result.step.wrong;
  result.verified = ranks.all(result.wrong.empty());
  return result;
}

}  // namespace

double memory_bytes(int L, int ranks, bool doubles) {
  return 3 * sites(L) * numbers_a_site * (doubles ? 8 : 4) * ranks;
}
double memory_flops(int L, int ranks) { return 2 * sites(L) * numbers_a_site * ranks; }

std::vector<int> memory_sizes(const IttOptions& options, const Ranks& ranks) {
  std::vector<int> all = options.common.quick ? std::vector<int>{8, 16, 24} : stepped(8, 48);
  while (!all.empty() && !fits(ranks, memory_bytes(all.back(), 1, options.precision == "double"))) {
    all.pop_back();
  }
  return all;
}

Expected expected_memory(const IttOptions& options, int L) {
  const double pass = memory_bytes(L, 1, options.precision == "double") / usual_mb_per_s;
  const int samples = options.common.rounds_or(20, 5);
  const auto part = [&](double us, int times) {
    return std::max(us, times * pass) * (1 + share_of_set_up);
  };
  return {part(full_memory_us(options), samples),
          part(Budget::least_share_of_sample * full_memory_us(options), Budget::least_rounds)};
}

std::vector<MemoryResult> measure_memory(const IttOptions& options, const Ranks& ranks,
                                         const std::vector<int>& sizes, ThreadTeam& team,
                                         Budget& budget, Report& report, Share share) {
  std::vector<MemoryResult> results;
  for (const int L : sizes) {
    budget.begin();
    report.progress(fmt::format("a*x + y, L={}", L), share.at(L / 52.0));
    results.push_back(options.precision == "double"
                          ? measure_size<double>(options, ranks, team, budget, L)
                          : measure_size<float>(options, ranks, team, budget, L));
  }
  return results;
}

std::vector<int> stencil_sizes(const IttOptions& options) {
  return options.common.quick ? std::vector<int>{4, 8, 16} : stepped(4, 32);
}

Expected expected_stencil(const IttOptions& options, int L) {
  const double faces = 8.0 * L * L * L * stencil_Ls * half_spinor_bytes;
  const double least = options.common.rounds_or(10, 5) * 3 * faces / usual_mb_per_s;
  const auto part = [&](double us) { return stencil_columns * std::max(us, least); };
  return {part(full_stencil_us(options)),
          part(Budget::least_share_of_sample * full_stencil_us(options))};
}

std::vector<StencilResult> measure_stencil(const IttOptions& options, const IttLayout& layout,
                                           const Ranks& ranks, Budget& budget, Report& report,
                                           Share share, BackingReport& pages) {
  const std::vector<int> extents(layout.rank_grid.begin(), layout.rank_grid.end());
  const CartesianGrid grid(ranks.communicator(), extents, {true, true, true, true});
  EndpointSet endpoints(ranks.communicator(), endpoint_options(options));
  const std::vector<int> all = stencil_sizes(options);
  const LocalLattice largest{std::vector<int>(4, all.back()), stencil_Ls};
  const std::size_t most = slot_bytes(largest, extents);
  ranks.collectively([&] { check_shm(options, all.back(), most); });
  Buffer<std::byte> memory;
  ranks.collectively([&] { memory = Buffer<std::byte>(most); });
  pages = backing_of("huge", memory.data(), most);
  std::vector<StencilResult> results;
  std::uint64_t serial = 0;
  for (const int L : all) {
    budget.begin();
    report.progress(fmt::format("stencil exchange, L={}", L), share.at(L / 36.0));
    const LocalLattice lattice{std::vector<int>(4, L), stencil_Ls};
    FaceBuffers buffers(memory.data(), lattice, grid, 1);
    const double us_each = budget.sample_us(full_stencil_us(options), stencil_columns);
    StencilResult result =
        measure_faces(options, ranks, grid, endpoints, lattice, buffers, us_each, serial);
    result.L = L;
    result.bytes = face_bytes(lattice, 0);
    result.node_bytes = static_cast<double>(exchange_bytes(lattice, extents)) * ranks.node_size();
    results.push_back(result);
  }
  return results;
}

}  // namespace ropewalk::bench
