#include "tune/measure.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "collectives/calls.hpp"
#include "common/machine.hpp"
#include "common/parse.hpp"
#include "common/statistics.hpp"
#include "node/machine_share.hpp"
#include "ropewalk/collectives.hpp"
#include "ropewalk/error.hpp"
#include "topology/machine.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;
constexpr std::size_t most_bytes = 32 * MiB;  // of one buffer; each rank has four
constexpr std::size_t least_bytes = 4 * MiB;
// The four buffers of all ranks together take a quarter of the free memory.
constexpr std::size_t memory_share = 16;
constexpr std::size_t largest_cost = 4 * MiB;
const std::vector<std::size_t> cost_sizes = {
    64,       256,      512,       KiB,       2 * KiB,   4 * KiB, 8 * KiB, 16 * KiB,
    32 * KiB, 64 * KiB, 128 * KiB, 256 * KiB, 512 * KiB, MiB,     2 * MiB, largest_cost};
// These lie between those sizes, and are measured to check what is predicted from them.
const std::vector<std::size_t> sizes_between = {
    128,      384,      768,       1536,      3 * KiB,   6 * KiB,    12 * KiB, 24 * KiB,
    48 * KiB, 96 * KiB, 192 * KiB, 384 * KiB, 768 * KiB, 1536 * KiB, 3 * MiB};

// Messages between nodes take long; times of 4 MiB show what a longer one costs.
constexpr std::size_t most_bytes_over_nodes = 4 * MiB;

void check_ranks(const Ranks& ranks, const NodePlaces& places) {
  if (ranks.size() < 2) {
    throw CollectiveError(ErrorCode::argument,
                          "ranks: 1, expected 2 or more: what is tuned goes from rank to rank; "
                          "start for example `ropewalk tune -n 2`");
  }
  if (places.even()) return;
  throw CollectiveError(
      ErrorCode::argument,
      fmt::format("ranks: {} to {} on a node, expected as many on each; choose their number so",
                  places.least, places.most));
}

std::size_t buffer_bytes(const Ranks& ranks) {
  const auto all = static_cast<std::size_t>(ranks.node_size());
  const std::size_t free = available_memory();
  const std::size_t share = free == 0 ? most_bytes : free / memory_share / all;
  return std::clamp(share / MiB * MiB, least_bytes, most_bytes);
}

// Returns how many outermost caches the machine has for the CPUs of this process, and 1 where it
// has none.
std::size_t cache_domains() {
  const topology::Machine machine = topology::read_machine();
  int outermost = 0;
  for (const topology::Cache& cache : machine.caches) outermost = std::max(outermost, cache.level);
  std::set<int> first_cpus;
  for (const topology::Cache& cache : machine.caches) {
    if (cache.level == outermost && !cache.cpus.empty()) first_cpus.insert(cache.cpus.front());
  }
  return std::max<std::size_t>(first_cpus.size(), 1);
}

float* floats_of(std::byte* memory) { return reinterpret_cast<float*>(memory); }

}  // namespace

// A way has either a communicator or a channel, made under the thresholds of its profile.
struct TuneMeasurement::Way {
  std::unique_ptr<Collectives> node;
  std::unique_ptr<Channel> channel;

  Way(const Ranks& ranks, const std::string& profile, bool of_channel) {
    const tuning::Trial trial(profile);
    if (of_channel) {
      channel = std::make_unique<Channel>(ranks.communicator());
    } else {
      node = std::make_unique<Collectives>(ranks.communicator());
    }
  }
};

TuneMeasurement::TuneMeasurement(const Ranks& ranks) : ranks_(ranks), places_(places_of(ranks)) {
  check_ranks(ranks, places_);
  const node::Crowding crowding = node::crowding(mpi::comm_world(), ranks.size());
  facts_ = tuning::facts_of(places_.most, crowding.here);
  situation_.ranks = places_.most;
  situation_.nodes = places_.nodes;
  situation_.crowded = crowding.anywhere;
  largest_ = static_cast<std::size_t>(-ranks.max(-static_cast<double>(buffer_bytes(ranks))));
  if (places_.over_nodes()) largest_ = std::min(largest_, most_bytes_over_nodes);
  ranks.collectively([&] {
    arena_send_ = Buffer<float>(largest_ / sizeof(float));
    arena_receive_ = Buffer<float>(largest_ / sizeof(float));
    private_send_ = page_block("memalign", largest_);
    private_receive_ = page_block("memalign", largest_);
  });
  std::fill_n(arena_send_.data(), arena_send_.size(), 1.0F);
  std::fill_n(arena_receive_.data(), arena_receive_.size(), 1.0F);
}

float* TuneMeasurement::send(TuneMemory memory) const {
  return memory == TuneMemory::arena ? const_cast<float*>(arena_send_.data())
                                     : floats_of(private_send_.data());
}

float* TuneMeasurement::receive(TuneMemory memory) const {
  return memory == TuneMemory::all_private ? floats_of(private_receive_.data())
                                           : const_cast<float*>(arena_receive_.data());
}

std::size_t TuneMeasurement::buffer_of(Op op, std::size_t bytes) const {
  std::size_t most = 0;
  for (int rank = 0; rank < ranks_.size(); ++rank) {
    const CallShape shape{op, bytes, ranks_.size(), rank};
    most = std::max({most, shape.send_count(), shape.receive_count(), shape.count()});
  }
  return most * sizeof(float);
}

std::size_t TuneMeasurement::in_force(tuning::Id id) const {
  return tuning::Values(facts_, tuning::profile())[id];
}

std::vector<std::size_t> TuneMeasurement::sizes_around(const Question& question,
                                                       std::size_t before) const {
  if (question.has_border() && !question.sizes.empty()) return question.sizes;
  const tuning::Row& row = tuning::row(question.id);
  const std::size_t standard = tuning::default_value(row, facts_);
  std::vector<std::size_t> all = around(std::min(before, standard), std::max(before, standard),
                                        question.down, question.up, row.least, row.most);
  std::erase_if(all, [&](std::size_t bytes) {
    const auto too_large = [&](const TuneCall& call) {
      return buffer_of(call.op, call_bytes(call, bytes, ranks_.size())) > largest_;
    };
    return question.has_border() &&
           (bytes > largest_ || std::ranges::any_of(question.calls, too_large));
  });
  return all;
}

std::string TuneMeasurement::reason_to_skip(const Question& question) const {
  if (question.of_channel && ranks_.size() % 2 != 0) {
    return "an odd number of ranks: messages are measured between two at a time";
  }
  const std::vector<std::size_t> sizes = sizes_around(question, in_force(question.id));
  if (sizes.empty()) return "no size of it fits the memory";
  if (question.over_nodes) return reason_to_skip_over_nodes(question, sizes);
  if (question.id == tuning::Id::node_two_level) {
    const std::size_t domains = cache_domains();
    if (domains == 1) return "one cache domain";
    if (domains >= static_cast<std::size_t>(ranks_.size())) {
      return "no cache domain has two ranks";
    }
  }
  return "";
}

// The algorithm that is taken over nodes where the profile has these lines.
std::string TuneMeasurement::algorithm(Op op, std::size_t bytes, std::string_view lines) const {
  const tuning::Trial trial(lines);
  for (const Alternative& one : explain_collective(name(op), bytes, situation_).alternatives) {
    if (one.taken) return one.algorithm;
  }
  return "";
}

std::string TuneMeasurement::reason_to_skip_over_nodes(
    const Question& question, const std::vector<std::size_t>& sizes) const {
  for (const TuneCall& call : question.calls) {
    for (const std::size_t amount : sizes) {
      const std::size_t bytes = call_bytes(call, amount, ranks_.size());
      if (algorithm(call.op, bytes, question.below) != algorithm(call.op, bytes, question.above)) {
        return "";
      }
    }
  }
  return places_.most == 1 ? "every node has one rank: both ways are the MPI's own call"
                           : "both ways are the same here";
}

Sample TuneMeasurement::message_sample(Channel& channel, TuneMemory memory, std::size_t bytes) {
  P2pRun run;
  run.bytes = bytes;
  run.rank = ranks_.rank();
  run.send = reinterpret_cast<std::byte*>(send(memory));
  run.receive = reinterpret_cast<std::byte*>(receive(memory));
  return [this, &channel, run](int calls) mutable {
    run.iterations = calls;
    return time_channel(channel, plain_, run).us / run.messages();
  };
}

Sample TuneMeasurement::call_sample(Collectives& node, Op op, TuneMemory memory, bool rewritten,
                                    std::size_t bytes) {
  Run run;
  run.shape = {op, bytes, ranks_.size(), ranks_.rank()};
  run.send = send(memory);
  run.receive = receive(memory);
  run.rewritten = rewritten;
  return [&node, run](int calls) mutable {
    run.iterations = calls;
    return time_ropewalk(node, run);
  };
}

std::vector<Times> TuneMeasurement::times_of(const Question& question, const std::vector<Way>& ways,
                                             std::size_t amount, const Effort& effort) {
  std::vector<Times> cases;
  if (question.of_channel) {
    std::vector<Sample> samples;
    samples.reserve(ways.size());
    for (const Way& way : ways) {
      samples.push_back(message_sample(*way.channel, question.memory, amount));
    }
    cases.push_back(in_turns(ranks_, samples, effort));
  }
  for (const TuneCall& call : question.calls) {
    const std::size_t bytes = call_bytes(call, amount, ranks_.size());
    std::vector<Sample> samples;
    samples.reserve(ways.size());
    for (const Way& way : ways) {
      samples.push_back(
          call_sample(*way.node, call.op, question.memory, question.rewritten, bytes));
    }
    cases.push_back(in_turns(ranks_, samples, effort));
  }
  return cases;
}

Finding TuneMeasurement::search(const Question& question, std::size_t before,
                                const Effort& effort) {
  const tuning::Row& row = tuning::row(question.id);
  const auto one_line = [&](std::size_t value) {
    return fmt::format("{} = {}\n", row.name, value);
  };
  std::vector<std::size_t> sizes = sizes_around(question, before);
  std::vector<Way> ways;
  const auto add = [&](std::string_view profile) {
    const std::string lines = std::string(question.beside) + std::string(profile);
    ways.emplace_back(ranks_, with_found(lines, found_), question.of_channel);
  };
  const Measure measure = [&](std::size_t amount) {
    return times_of(question, ways, amount, effort);
  };
  if (question.has_border()) {
    add(question.below);
    add(question.above);
    return find_border({before, row.least, row.most, question.from_on, sizes}, measure);
  }
  std::erase(sizes, before);
  sizes.insert(sizes.begin(), before);
  for (const std::size_t value : sizes) add(one_line(value));
  return find_value(sizes, question.sizes, measure);
}

TuneAnswer TuneMeasurement::answer(const Question& question, const Effort& effort) {
  TuneAnswer made;
  made.question = &question;
  made.standard = tuning::default_value(tuning::row(question.id), facts_);
  made.before = in_force(question.id);
  made.finding.value = made.before;
  made.skipped = reason_to_skip(question);
  if (made.skipped.empty()) made.finding = search(question, made.before, effort);
  found_[std::string(question.name())] = made.finding.value;
  return made;
}

std::vector<TuneCost> TuneMeasurement::costs(Op op, TuneMemory memory, const Effort& effort) {
  std::vector<const ForcedPath*> forced;
  std::vector<Way> ways;
  for (const ForcedPath& one : forced_paths()) {
    if (one.memory != memory) continue;
    forced.push_back(&one);
    ways.emplace_back(ranks_, std::string(one.profile), false);
  }
  std::vector<TuneCost> all;
  for (const std::size_t bytes : sizes_of_costs()) {
    if (buffer_of(op, bytes) > largest_) continue;
    std::vector<Sample> samples;
    std::vector<const ForcedPath*> measured;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      Sample one = call_sample(*ways[i].node, op, memory, false, bytes);
      one(1);
      if (!ranks_.all(name(ways[i].node->last_path()) == forced[i]->path)) continue;
      samples.push_back(std::move(one));
      measured.push_back(forced[i]);
    }
    if (samples.empty()) continue;
    const Times times = in_turns(ranks_, samples, effort);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      all.push_back({name(op), std::string(name(memory)), std::string(measured[i]->path), bytes,
                     median(times[i])});
    }
  }
  return all;
}

std::vector<TuneCost> TuneMeasurement::costs_over_nodes(Op op, const Effort& effort) {
  std::vector<const ForcedAlgorithm*> forced;
  std::vector<Way> ways;
  for (const ForcedAlgorithm& one : forced_over_nodes()) {
    if (one.op != op) continue;
    forced.push_back(&one);
    ways.emplace_back(ranks_, std::string(one.profile), false);
  }
  std::vector<TuneCost> all;
  for (const std::size_t bytes : sizes_of_costs()) {
    if (buffer_of(op, bytes) > largest_) continue;
    std::vector<Sample> samples;
    std::vector<const ForcedAlgorithm*> measured;
    for (std::size_t i = 0; i < ways.size(); ++i) {
      if (algorithm(op, bytes, forced[i]->profile) != forced[i]->algorithm) continue;
      samples.push_back(call_sample(*ways[i].node, op, TuneMemory::arena, false, bytes));
      measured.push_back(forced[i]);
    }
    if (samples.empty()) continue;
    const Times times = in_turns(ranks_, samples, effort);
    for (std::size_t i = 0; i < samples.size(); ++i) {
      all.push_back(
          {name(op), "nodes", std::string(measured[i]->algorithm), bytes, median(times[i])});
    }
  }
  return all;
}

const std::vector<std::size_t>& TuneMeasurement::sizes_of_costs() const {
  return between_sizes_ ? sizes_between : cost_sizes;
}

int TuneMeasurement::samples_of(const Question& question) const {
  if (!reason_to_skip(question).empty()) return 0;
  const auto sizes = static_cast<int>(sizes_around(question, in_force(question.id)).size());
  const int cases = std::max<int>(static_cast<int>(question.calls.size()), 1);
  if (question.has_border()) return 2 * cases * (sizes + 1);
  return sizes * cases * static_cast<int>(question.sizes.size());
}

int TuneMeasurement::samples_of_costs() const {
  const int ways = places_.over_nodes() ? 3 : 2;
  return ways * static_cast<int>(sizes_of_costs().size());
}

}  // namespace ropewalk::bench
