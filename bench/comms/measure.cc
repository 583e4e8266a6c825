// Interleaved, verified samples of halo exchanges; see measure.hpp.
#include "comms/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <memory>

#include "common/machine.hpp"
#include "common/parse.hpp"
#include "common/timed_threads.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::bench {
namespace {

constexpr double sample_us = 5000;        // a sample lasts this long, so that the barrier vanishes
constexpr double quick_sample_us = 2000;  // the same for --quick
// On a network of known rate: what a link may catch up on after a pause (1 ms of its rate in a
// `ropewalk cluster`) has to vanish, too, and is spent before the clock starts.
constexpr double network_sample_us = 40000;
constexpr int lead_in_share = 5;
constexpr int max_iterations = 2000;
// Plans are made collectively, one a slot and column, which takes long where ranks share cores. For
// L = 4 the rotation is then larger than the private caches only; from L = 8 on than most shared
// ones.
constexpr int max_slots = 24;
// What is assumed when the time is announced: the rate and the fixed cost of an exchange within a
// node, and how often filling and checking go over what is sent.
constexpr double usual_mb_per_s = 8000;
constexpr double usual_exchange_us = 20;
constexpr double passes_over_data = 3;

EndpointOptions endpoint_options(const CommsOptions& options) {
  EndpointOptions result;
  result.lanes = options.lanes;
  const auto& list = options.strategy_list;
  const auto needs_threads = [](Strategy s) {
    return s == Strategy::threaded || s == Strategy::automatic;
  };
  result.threads = std::any_of(list.begin(), list.end(), needs_threads);
  if (!result.threads && options.lanes == 0) result.lanes = 1;
  return result;
}

// Only ranks of one node can read each other's memory, so some node must have several. Collective.
bool wants_direct(const CommsOptions& options, const Ranks& ranks) {
  const auto has = [](const auto& list, const auto& value) {
    return std::find(list.begin(), list.end(), value) != list.end();
  };
  return !ranks.all(ranks.node_size() == 1) && has(options.strategy_list, Strategy::direct) &&
         has(options.kinds, std::string("huge"));
}

// On pages that are not the arena's, the faces are private memory. This column is for those who ask
// for it.
bool wants_private_direct(const CommsOptions& options) {
  return options.strategies != CommsOptions().strategies;
}

void check_memory(std::size_t bytes, int node_ranks) {
  const std::size_t available = available_memory();
  const std::size_t wanted = bytes * static_cast<std::size_t>(node_ranks);
  if (available == 0 || wanted <= available / 10 * 9) return;
  throw Error(
      ErrorCode::memory,
      fmt::format("--L: the buffers of {} ranks on this node take {}, and {} are free; give "
                  "smaller L, fewer ranks a node or one kind of --pages",
                  node_ranks, size_text(wanted), size_text(available)));
}

}  // namespace

struct Measurement::Case {
  std::string strategy;
  std::string pages;
  std::shared_ptr<FaceBuffers> buffers;  // shared by the cases of one kind of pages
  std::vector<Halo> halos;               // one a slot; none for the limit
  CopyWay way = CopyWay::library;        // of the limit
  int iterations = 1;
  std::vector<double> us;
  std::string wrong;
};

std::vector<double> slowest(const Column& column) {
  std::vector<double> result(column.us.empty() ? 0 : column.us[0].size(), 0.0);
  for (const auto& rank : column.us) {
    for (std::size_t round = 0; round < result.size(); ++round) {
      result[round] = std::max(result[round], rank[round]);
    }
  }
  return result;
}

Measurement::Measurement(const CommsOptions& options, const Ranks& ranks,
                         const std::vector<int>& rank_grid,
                         const std::vector<LocalLattice>& lattices)
    : options_(options),
      ranks_(ranks),
      grid_(ranks.communicator(), rank_grid, std::vector<bool>(rank_grid.size(), true)),
      endpoints_(ranks.communicator(), endpoint_options(options)),
      wants_plain_(wants_plain()),
      rounds_(options.common.rounds_or(20, 5)),
      budget_(options.common, ranks, expected(lattices)) {
  if (wants_plain_) {
    EndpointOptions one_lane;
    one_lane.lanes = 1;
    one_lane.threads = false;
    one_lane.piece_bytes = 0;
    plain_ = std::make_unique<EndpointSet>(ranks.communicator(), one_lane);
  }
  std::size_t largest = 0;
  for (const LocalLattice& lattice : lattices) {
    for (const std::string& buffers : options.buffer_list) {
      const auto slots = static_cast<std::size_t>(slots_for(lattice, buffers));
      largest = std::max(largest, slots * slot_bytes(lattice, rank_grid));
    }
  }
  const std::size_t pools = options.kinds.size() + (wants_direct(options, ranks) ? 1 : 0);
  ranks.collectively([&] { check_memory(largest * pools, ranks.node_size()); });
  ranks.collectively([&] {
    for (const std::string& kind : options.kinds) {
      pools_[kind] = page_block(kind, largest);
      backings_[kind] = backing(kind, pools_[kind]);
    }
  });
  if (wants_direct(options, ranks)) make_shared_pool(largest);
  if (shared_pool_.size() == 0 && options.strategy_list == std::vector{Strategy::direct} &&
      options.kinds == std::vector<std::string>{"huge"}) {
    throw CollectiveError(
        ErrorCode::unsupported,
        "--strategy: direct alone, expected several ranks on one node and huge pages; "
        "start it there with --pages huge, or give other strategies too");
  }
}

// The other columns keep the blocks they always had. Without huge pages there is no column: it
// would stand beside columns of another kind of pages.
void Measurement::make_shared_pool(std::size_t bytes) {
  ranks_.collectively([&] { shared_pool_ = Buffer<std::byte>(bytes); });
  const bool huge = backing_of("huge", shared_pool_.data(), bytes).all_huge;
  if (ranks_.all(huge || !backings_.at("huge").all_huge)) return;
  shared_pool_ = {};
}

bool Measurement::wants_plain() const {
  const bool several_nodes = !ranks_.all(ranks_.size() == ranks_.node_size());
  return options_.plain || (several_nodes && options_.strategies == CommsOptions().strategies);
}

// Says how long a sample lasts where there is time enough.
double Measurement::full_sample_us(bool exchanges) const {
  if (exchanges && options_.line_rate_mb > 0) return network_sample_us;
  return options_.common.quick ? quick_sample_us : sample_us;
}

// What the parts will take, at rates that machines usually have.
Expected Measurement::expected(const LocalLattice& lattice, const std::string& buffers) const {
  const auto slots = static_cast<double>(slots_for(lattice, buffers));
  const auto bytes = static_cast<double>(exchange_bytes(lattice, grid_.extents()));
  const bool network = options_.line_rate_mb > 0;
  const double rate = network ? options_.line_rate_mb : usual_mb_per_s;
  const double rotation = slots * (bytes / rate + usual_exchange_us);
  const double lead_in = network ? 1.0 + 1.0 / lead_in_share : 1.0;
  const double data = passes_over_data * slots * bytes / usual_mb_per_s;
  const double kinds = static_cast<double>(options_.kinds.size());
  const double strategies =
      static_cast<double>(options_.strategy_list.size()) + (wants_plain_ ? 1 : 0);
  Expected sum =
      sampling(kinds * strategies, rounds_, full_sample_us(true) * lead_in, rotation + data);
  const Expected copies =
      sampling(static_cast<double>(copy_ways().size()), rounds_, full_sample_us(false), data);
  sum.all_us += copies.all_us;
  sum.least_us += copies.least_us;
  return sum;
}

std::vector<Expected> Measurement::expected(const std::vector<LocalLattice>& lattices) const {
  std::vector<Expected> all;
  for (const LocalLattice& lattice : lattices) {
    for (const std::string& buffers : options_.buffer_list) {
      all.push_back(expected(lattice, buffers));
    }
  }
  return all;
}

Measurement::~Measurement() = default;

int Measurement::slots_for(const LocalLattice& lattice, const std::string& buffers) const {
  if (buffers == "hot") return 1;
  const std::size_t slot = slot_bytes(lattice, grid_.extents());
  const std::size_t wanted = (2 * last_level_bytes() + slot - 1) / slot;
  return static_cast<int>(std::clamp<std::size_t>(wanted, 1, max_slots));
}

// Makes one halo for each slot. Returns false on every rank where neighbours cannot map each
// other's memory.
bool Measurement::add_halos(Case& one, Strategy strategy, EndpointSet& endpoints) {
  for (int slot = 0; slot < one.buffers->slots(); ++slot) {
    try {
      one.halos.emplace_back(grid_, endpoints, one.buffers->packets(slot),
                             HaloOptions{strategy, Corners::no});
    } catch (const Error& error) {
      const bool alone = options_.strategy_list.size() == 1;
      if (alone || strategy != Strategy::direct || error.code() != ErrorCode::unsupported) throw;
      return false;
    }
  }
  return true;
}

std::vector<Measurement::Case> Measurement::cases(const LocalLattice& lattice, int slots) {
  std::vector<Case> all;
  std::shared_ptr<FaceBuffers> shared;
  if (shared_pool_.size() > 0) {
    shared = std::make_shared<FaceBuffers>(shared_pool_.data(), lattice, grid_, slots);
  }
  for (const std::string& kind : options_.kinds) {
    auto buffers = std::make_shared<FaceBuffers>(pools_.at(kind).data(), lattice, grid_, slots);
    for (const Strategy strategy : options_.strategy_list) {
      const bool direct = strategy == Strategy::direct;
      const bool mapped = direct && kind == "huge";
      if (mapped ? shared == nullptr : direct && !wants_private_direct(options_)) continue;
      all.push_back(
          {name(strategy), kind, mapped ? shared : buffers, {}, CopyWay::library, 1, {}, ""});
      if (!add_halos(all.back(), strategy, endpoints_)) all.pop_back();
    }
    if (plain_) {
      all.push_back({"plain", kind, buffers, {}, CopyWay::library, 1, {}, ""});
      add_halos(all.back(), Strategy::concurrent, *plain_);
    }
    if (kind != options_.kinds.front()) continue;
    for (const CopyWay way : copy_ways()) {
      all.push_back({"limit", kind, buffers, {}, way, 1, {}, ""});
    }
  }
  return all;
}

double Measurement::sample(Case& one, int iterations) {
  const int slots = one.buffers->slots();
  ranks_.barrier();
  if (options_.line_rate_mb > 0 && !one.halos.empty()) {
    const int lead_in = (iterations + lead_in_share - 1) / lead_in_share;
    for (int i = 0; i < lead_in; ++i) one.halos[static_cast<std::size_t>(i % slots)].exchange();
  }
  const double begin = now_us();
  if (one.halos.empty()) {
    for (int i = 0; i < iterations; ++i) one.buffers->copy(i % slots, one.way);
  } else {
    for (int i = 0; i < iterations; ++i) one.halos[static_cast<std::size_t>(i % slots)].exchange();
  }
  return (now_us() - begin) / iterations;
}

double Measurement::checked_sample(Case& one, int iterations) {
  ++serial_;
  one.buffers->fill(serial_);
  const double time = sample(one, iterations);
  if (!one.halos.empty() && one.wrong.empty()) one.wrong = one.buffers->check(serial_);
  return time;
}

// Exchanges a sample of one column, the same on all ranks: a whole number of rotations.
int Measurement::calibrate(Case& one, int slots, double shortened) {
  checked_sample(one, slots);  // connections, registrations and pages of the MPI itself
  if (options_.iterations > 0) return (options_.iterations + slots - 1) / slots * slots;
  const double wanted = shortened * full_sample_us(!one.halos.empty());
  int iterations = slots;
  for (;;) {
    // The mean of the ranks, so that one slow moment of one rank does not decide for all.
    const double mean = ranks_.sum(sample(one, iterations)) / ranks_.size();
    if (mean * iterations >= wanted / 2 || iterations >= max_iterations) return iterations;
    iterations *= 2;
  }
}

Column Measurement::column(Case& one) const {
  Column result;
  result.strategy = one.strategy;
  result.pages = one.pages;
  result.chosen = one.halos.empty() ? name(one.way) : name(one.halos.front().strategy());
  result.iterations = one.iterations;
  result.us = ranks_.gather(one.us);
  result.verified = ranks_.all(one.wrong.empty());
  if (!result.verified) {
    for (const std::string& wrong : ranks_.gather(one.wrong)) {
      if (result.wrong.empty()) result.wrong = wrong;
    }
  }
  return result;
}

Result Measurement::measure(const LocalLattice& lattice, const std::string& buffers, Report& report,
                            double share, double share_each) {
  budget_.begin();
  const int slots = slots_for(lattice, buffers);
  std::vector<Case> all = cases(lattice, slots);
  Result result{lattice, buffers, slots, {}};
  const double samples = least_samples(static_cast<double>(all.size()));
  const double shortened = budget_.sample_us(full_sample_us(true), samples) / full_sample_us(true);
  for (Case& one : all) one.iterations = calibrate(one, slots, shortened);
  int rounds = rounds_;
  const double begun = now_us();
  for (int round = 0; round < rounds; ++round) {
    if (round == 1) rounds = budget_.rounds(rounds_, now_us() - begun);
    report.progress(
        fmt::format("comms L={} {} round {} of {}", label(lattice), buffers, round + 1, rounds),
        share + share_each * round / rounds);
    // Each round begins with another column, so that none always follows the same one.
    for (std::size_t i = 0; i < all.size(); ++i) {
      Case& one = all[(i + static_cast<std::size_t>(round)) % all.size()];
      one.us.push_back(checked_sample(one, one.iterations));
    }
  }
  for (Case& one : all) result.columns.push_back(column(one));
  return result;
}

}  // namespace ropewalk::bench
