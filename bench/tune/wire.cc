#include "tune/wire.hpp"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <memory>

#include "common/statistics.hpp"
#include "common/timed_threads.hpp"
#include "ropewalk/endpoint.hpp"
#include "ropewalk/memory.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t KiB = 1024;
constexpr std::size_t MiB = 1024 * KiB;
constexpr int tag = 7;
constexpr std::array<std::size_t, 10> wire_sizes = {
    8, 512, 4 * KiB, 16 * KiB, 32 * KiB, 64 * KiB, 128 * KiB, 256 * KiB, MiB, 4 * MiB};
constexpr std::array<std::size_t, 5> split_sizes = {64 * KiB, 256 * KiB, MiB, 2 * MiB, 4 * MiB};
constexpr std::array<int, 2> more_lanes = {2, 4};

template <std::size_t N>
int count_up_to(const std::array<std::size_t, N>& sizes, std::size_t largest) {
  return static_cast<int>(
      std::ranges::count_if(sizes, [=](std::size_t bytes) { return bytes <= largest; }));
}

// A Line has the buffers and the plans of one rank for messages of one size with its opposite.
class Line {
 public:
  Line(EndpointSet& endpoints, const NodePlaces& places, int rank, std::size_t bytes,
       Strategy strategy)
      : out_(std::max<std::size_t>(bytes, 1)),
        in_(std::max<std::size_t>(bytes, 1)),
        strategy_(strategy),
        peer_(places.opposite(rank)),
        leads_(places.is_on_first_of_pair(rank)) {
    const Message send = message(Message::Kind::send, out_.data(), bytes);
    const Message receive = message(Message::Kind::receive, in_.data(), bytes);
    const bool works = peer_ >= 0;
    send_.emplace(endpoints.plan(works ? std::vector{send} : std::vector<Message>{}));
    receive_.emplace(endpoints.plan(works ? std::vector{receive} : std::vector<Message>{}));
    both_.emplace(endpoints.plan(works ? std::vector{receive, send} : std::vector<Message>{}));
  }

  // A message there and one back, `calls` times; returns the time of one way.
  double there_and_back(int calls) {
    const double begin = now_us();
    for (int i = 0; i < calls; ++i) {
      run(leads_ ? *send_ : *receive_);
      run(leads_ ? *receive_ : *send_);
    }
    return (now_us() - begin) / 2;
  }

  // A message each way at once, `calls` times.
  double both_ways(int calls) {
    const double begin = now_us();
    for (int i = 0; i < calls; ++i) run(*both_);
    return now_us() - begin;
  }

 private:
  Message message(Message::Kind kind, std::byte* data, std::size_t bytes) const {
    return {.kind = kind, .data = data, .bytes = bytes, .peer = peer_, .tag = tag};
  }
  void run(MessagePlan& plan) const {
    plan.start(strategy_);
    plan.wait();
  }

  Buffer<std::byte> out_;
  Buffer<std::byte> in_;
  Strategy strategy_;
  int peer_;
  bool leads_;
  std::optional<MessagePlan> send_;
  std::optional<MessagePlan> receive_;
  std::optional<MessagePlan> both_;
};

// Returns the times of messages of one size, by one lane and by each number of lanes.
Times times_by_lanes(const Ranks& ranks, const NodePlaces& places, std::size_t bytes,
                     const std::vector<std::unique_ptr<EndpointSet>>& sets, const Effort& effort) {
  std::vector<std::unique_ptr<Line>> lines;
  std::vector<Sample> ways;
  const bool works = places.is_first_of_node(ranks.rank()) && places.opposite(ranks.rank()) >= 0;
  for (const auto& set : sets) {
    const Strategy strategy = set->has_threads() ? Strategy::threaded : Strategy::concurrent;
    lines.push_back(std::make_unique<Line>(*set, places, ranks.rank(), bytes, strategy));
    ways.emplace_back([line = lines.back().get(), works](int calls) {
      return works ? line->there_and_back(calls) : 0.0;
    });
  }
  return in_turns(ranks, ways, effort);
}

}  // namespace

std::vector<TuneCost> wire_costs(const Ranks& ranks, const NodePlaces& places, std::size_t largest,
                                 const Effort& effort) {
  EndpointSet endpoints(ranks.communicator(), {.lanes = 1, .threads = false});
  const bool works = places.opposite(ranks.rank()) >= 0;
  const bool first = works && places.is_first_of_node(ranks.rank());
  std::vector<TuneCost> all;
  for (const std::size_t bytes : wire_sizes) {
    if (bytes > largest) break;
    Line line(endpoints, places, ranks.rank(), bytes, Strategy::concurrent);
    const std::vector<Sample> ways = {
        [&](int calls) { return first ? line.there_and_back(calls) : 0.0; },
        [&](int calls) { return first ? line.both_ways(calls) : 0.0; },
        [&](int calls) { return works ? line.there_and_back(calls) : 0.0; }};
    const Times times = in_turns(ranks, ways, effort);
    constexpr const char* names[] = {"one_way", "both_ways", "all_ranks"};
    for (std::size_t way = 0; way < ways.size(); ++way) {
      all.push_back({"wire", "arena", names[way], bytes, median(times[way])});
    }
  }
  return all;
}

LanesFound find_lanes(const Ranks& ranks, const NodePlaces& places, std::size_t largest,
                      const Effort& effort) {
  std::vector<std::unique_ptr<EndpointSet>> sets;
  sets.push_back(std::make_unique<EndpointSet>(ranks.communicator(),
                                               EndpointOptions{.lanes = 1, .threads = false}));
  for (const int lanes : more_lanes) {
    sets.push_back(std::make_unique<EndpointSet>(
        ranks.communicator(), EndpointOptions{.lanes = lanes, .split_bytes = 1}));
  }
  std::map<std::size_t, Times> measured;
  LanesFound found;
  for (const std::size_t bytes : split_sizes) {
    if (bytes > largest) break;
    measured[bytes] = times_by_lanes(ranks, places, bytes, sets, effort);
    for (std::size_t set = 0; set < sets.size(); ++set) {
      found.costs.push_back({"wire", "arena", fmt::format("lanes_{}", sets[set]->lanes()), bytes,
                             median(measured[bytes][set])});
    }
  }
  found.splitting.value = LanesFound::never;
  for (std::size_t way = 1; way < sets.size() && !measured.empty(); ++way) {
    const Measure measure = [&](std::size_t bytes) -> std::vector<Times> {
      if (!measured.contains(bytes)) {
        measured[bytes] = times_by_lanes(ranks, places, bytes, sets, effort);
      }
      return {{measured[bytes][0], measured[bytes][way]}};
    };
    Border border{.standard = LanesFound::never, .most = LanesFound::never, .sizes = {}};
    for (const std::size_t bytes : split_sizes) {
      if (bytes <= largest) border.sizes.push_back(bytes);
    }
    const Finding finding = find_border(border, measure);
    if (finding.gain <= found.splitting.gain && !found.splitting.sizes.empty()) continue;
    if (finding.gain > 0) found.lanes = sets[way]->lanes();
    found.splitting = finding;
  }
  return found;
}

int samples_of_wire(std::size_t largest) {
  constexpr int ways = 3;
  return ways * count_up_to(wire_sizes, largest);
}

int samples_of_lanes(std::size_t largest) {
  constexpr int halvings = 4;  // of two borders
  constexpr int ways = 1 + static_cast<int>(more_lanes.size());
  return ways * (count_up_to(split_sizes, largest) + halvings);
}

}  // namespace ropewalk::bench
