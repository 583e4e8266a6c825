// Interleaved, verified samples of the four ways; see measure.hpp.
#include "overlap/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "common/statistics.hpp"
#include "common/team.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr double sample_us = 10000;  // so that the barrier between ranks vanishes
// Between nodes: a wire lets through the first millisecond's worth of bytes at once.
constexpr double sample_between_nodes_us = 60000;
constexpr int max_iterations = 500;
// A sample has several exchanges even on a slow network, which lets a first one through faster.
constexpr int min_iterations = 8;
// Vectors handed out at a time: some 15 us, as often as messages are to be looked after.
constexpr std::size_t block = 6;

int lanes_for(const OverlapOptions& options, const std::vector<int>& comm_list) {
  if (options.lanes > 0) return options.lanes;
  return std::max(1, *std::max_element(comm_list.begin(), comm_list.end()));
}

EndpointOptions endpoint_options(const OverlapOptions& options, int lanes) {
  EndpointOptions made;
  made.lanes = lanes;
  const auto& list = options.strategy_list;
  made.threads = std::find(list.begin(), list.end(), Strategy::threaded) != list.end();
  return made;
}

// Vectors of sites that need no neighbour's face: those off the edges of divided dimensions.
std::size_t interior_vectors(int L, int Ls, const std::vector<int>& grid) {
  double sites = std::pow(L, 4) * Ls;
  for (const int ranks : grid) sites *= ranks > 1 ? static_cast<double>(L - 2) / L : 1.0;
  return std::max<std::size_t>(1, static_cast<std::size_t>(sites) / lanes_a_vector);
}

std::vector<int> agreed(const OverlapOptions& options, const Ranks& ranks, int threads) {
  const int fewest = -static_cast<int>(ranks.max(-threads));
  return comm_threads(options, fewest);
}

}  // namespace

double OverlapResult::median(Way way) const {
  return summarize(us[static_cast<std::size_t>(way)]).median;
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

struct OverlapMeasurement::Case {
  Halo halo;
  FaceBuffers& buffers;
  Mult& mult;
  WorkStealing whole;  // no worker communicates
  WorkStealing loop;
  OverlapResult result;
};

OverlapMeasurement::OverlapMeasurement(const OverlapOptions& options, const Ranks& ranks)
    : options_(options),
      ranks_(ranks),
      grid_(ranks.communicator(), overlap_grid(options, ranks.size()), {true, true, true, true}),
      team_(ranks.communicator(), {.threads = options.threads}),
      comm_list_(agreed(options, ranks, team_.size())),
      lanes_(lanes_for(options, comm_list_)),
      endpoints_(ranks.communicator(), endpoint_options(options, lanes_)),
      rounds_(options.common.rounds_or(15, 5)) {}

// One exchange and one loop, as a program would do them.
void OverlapMeasurement::step(Case& one, Way way) {
  const std::size_t vectors = one.mult.vectors();
  const auto interior = [&](std::size_t begin, std::size_t end) {
    for (std::size_t i = begin; i < end; ++i) one.mult.compute(i % vectors, i % vectors + 1);
  };
  const int communicating = one.loop.communicating_workers();
  const auto exchange = [&](int worker) {
    if (communicating == 0 && worker == 0) one.halo.exchange();
    if (worker < communicating) schedule::communicate(worker, communicating, one.halo);
  };
  team_.run([&](int worker) {
    if (way == Way::exchange || way == Way::one_after_other) exchange(worker);
    if (way == Way::one_after_other) team_.barrier();
    if (way == Way::compute || way == Way::one_after_other) one.whole.run(worker, interior);
    if (way == Way::overlapped) overlap_worker(worker, one.loop, one.halo, interior);
  });
}

double OverlapMeasurement::sample(Case& one, Way way, int iterations) {
  ranks_.barrier();
  const double begin = now_us();
  for (int i = 0; i < iterations; ++i) step(one, way);
  return ranks_.max((now_us() - begin) / iterations);
}

// The samples of a round, each way in turn; the overlapped one is checked.
void OverlapMeasurement::checked_samples(Case& one, int round) {
  OverlapResult& result = one.result;
  for (std::size_t i = 0; i < ways; ++i) {
    const auto way = static_cast<Way>((i + static_cast<std::size_t>(round)) % ways);
    const bool both = way == Way::overlapped;
    if (both) {
      one.buffers.fill(++serial_);
      one.mult.clear();
      sample(one, way, 1);  // pages and caches again as the loop leaves them
    }
    const double time = sample(one, way, result.iterations);
    result.us[static_cast<std::size_t>(way)].push_back(time);
    if (!both) continue;
    if (result.wrong.empty()) result.wrong = one.buffers.check(serial_);
    if (result.wrong.empty() && !one.mult.right()) {
      result.wrong = fmt::format("rank {}: an interior is not as the first", ranks_.rank());
    }
  }
}

int OverlapMeasurement::calibrate(Case& one) {
  const bool one_node = ranks_.node_size() == ranks_.size();
  const double full = one_node ? sample_us : sample_between_nodes_us;
  const double wanted = options_.common.quick ? full / 3 : full;
  sample(one, Way::one_after_other, 2);
  int iterations = options_.common.quick ? min_iterations / 2 : min_iterations;
  while (iterations < max_iterations &&
         sample(one, Way::one_after_other, iterations) * iterations < wanted) {
    iterations *= 2;
  }
  return iterations;
}

std::vector<OverlapResult> OverlapMeasurement::measure(int L, Strategy strategy, Report& report,
                                                       double share, double share_each) {
  const Lattice lattice{std::vector<int>(4, L), options_.Ls};
  std::unique_ptr<Buffer<std::byte>> memory;
  std::unique_ptr<Mult> mult;
  ranks_.jointly([&] {
    memory = std::make_unique<Buffer<std::byte>>(slot_bytes(lattice, grid_.extents()));
    mult = std::make_unique<Mult>(interior_vectors(L, options_.Ls, grid_.extents()));
  });
  FaceBuffers buffers(memory->data(), lattice, grid_, 1);
  mult->clear();
  mult->compute(0, mult->vectors());
  mult->right();
  std::vector<Case> cases;
  for (const int comm : comm_list_) {
    // The library's own threads and copies need no thread of ours but one that looks after them.
    if (comm > 1 && strategy != Strategy::concurrent && strategy != Strategy::sequential) continue;
    try {
      Halo halo(grid_, endpoints_, buffers.packets(0), {strategy, Corners::no});
      const std::size_t iterations = mult->vectors() * static_cast<std::size_t>(options_.passes);
      cases.push_back({std::move(halo),
                       buffers,
                       *mult,
                       WorkStealing(iterations, team_.size()),
                       WorkStealing(iterations, team_.size(), comm),
                       {}});
    } catch (const Error& error) {
      const bool alone = options_.strategy_list.size() == 1;
      if (alone || strategy != Strategy::direct || error.code() != ErrorCode::unsupported) throw;
      return {};
    }
    OverlapResult& result = cases.back().result;
    result.L = L;
    result.strategy = strategy;
    result.comm_threads = comm;
    result.lanes = lanes_;
    result.exchange_bytes = exchange_bytes(lattice, grid_.extents());
    result.sites = mult->sites();
  }
  for (Case& one : cases) one.result.iterations = calibrate(one);
  for (int round = 0; round < rounds_; ++round) {
    report.progress(fmt::format("overlap L={} {} round {}", L, name(strategy), round + 1),
                    share + share_each * round / rounds_);
    for (std::size_t i = 0; i < cases.size(); ++i) {
      checked_samples(cases[(i + static_cast<std::size_t>(round)) % cases.size()], round);
    }
  }
  std::vector<OverlapResult> results;
  for (Case& one : cases) {
    double comm_blocks = 0;
    double blocks = 0;
    for (int worker = 0; worker < team_.size(); ++worker) {
      const WorkStealing::Counts counts = one.loop.counts(worker);
      const double ran = static_cast<double>(counts.own + counts.stolen);
      blocks += ran;
      if (worker < one.loop.communicating_workers()) comm_blocks += ran;
    }
    one.result.stolen = ranks_.sum(blocks > 0 ? comm_blocks / blocks : 0) / ranks_.size();
    one.result.verified = ranks_.all(one.result.wrong.empty());
    for (const std::string& wrong : ranks_.gather(one.result.wrong)) {
      if (one.result.wrong.empty()) one.result.wrong = wrong;
    }
    results.push_back(one.result);
  }
  return results;
}

}  // namespace ropewalk::bench
