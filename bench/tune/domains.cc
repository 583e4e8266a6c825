// Flags inside a cache domain and between two.
#include <sched.h>

#include <algorithm>
#include <atomic>
#include <optional>

#include "common/statistics.hpp"
#include "common/timed_threads.hpp"
#include "node/rank_nodes.hpp"
#include "ropewalk/window.hpp"
#include "tune/copies.hpp"

namespace ropewalk::bench {
namespace {

constexpr std::size_t flag_bytes = 128;   // a line, and the one that is fetched with it
constexpr int looks_before_yield = 1000;  // ranks may share a core

struct Pair {
  std::string_view name;
  int first;
  int second;
};

// Returns a pair of ranks of one domain and a pair of two domains: what there is of them.
std::vector<Pair> pairs_of(const std::vector<int>& domains) {
  std::vector<Pair> pairs;
  const auto ranks = static_cast<int>(domains.size());
  for (const bool same : {true, false}) {
    for (int peer = 1; peer < ranks; ++peer) {
      const auto at = static_cast<std::size_t>(peer);
      const auto before = std::find(domains.begin(), domains.begin() + peer, domains[at]);
      const bool found = same ? before != domains.begin() + peer : domains[at] != domains[0];
      if (!found) continue;
      const auto first = same ? static_cast<int>(before - domains.begin()) : 0;
      pairs.push_back({same ? "same_domain" : "other_domain", first, peer});
      break;
    }
  }
  return pairs;
}

// Each rank has a flag in its memory of the window, which it alone writes.
class Flags {
 public:
  explicit Flags(const Ranks& ranks) : window_(ranks.communicator(), flag_bytes) {}

  // A flag there and one back, `calls` times; returns 0 on ranks that do not take part.
  double there_and_back(const Pair& pair, int calls) {
    const int own = window_.rank();
    if (own != pair.first && own != pair.second) return 0;
    const bool leads = own == pair.first;
    std::atomic_ref mine = flag(own);
    const std::atomic_ref theirs = flag(leads ? pair.second : pair.first);
    // Both have counted alike: each of their calls raised both flags by one.
    std::uint64_t number = mine.load(std::memory_order_relaxed);
    const double begin = now_us();
    for (int i = 0; i < calls; ++i) {
      ++number;
      if (leads) mine.store(number, std::memory_order_release);
      wait_for(theirs, number);
      if (!leads) mine.store(number, std::memory_order_release);
    }
    return now_us() - begin;
  }
  // Collective: all flags begin anew, since other pairs count otherwise.
  void reset(const Ranks& ranks) {
    ranks.barrier();
    flag(window_.rank()).store(0, std::memory_order_relaxed);
    ranks.barrier();
  }

 private:
  std::atomic_ref<std::uint64_t> flag(int rank) {
    return std::atomic_ref(*reinterpret_cast<std::uint64_t*>(window_.data(rank)));
  }
  // Pairs with the release of the other rank in there_and_back().
  static void wait_for(const std::atomic_ref<std::uint64_t>& flag, std::uint64_t number) {
    for (int look = 1; flag.load(std::memory_order_acquire) < number; ++look) {
      if (look % looks_before_yield == 0) sched_yield();
    }
  }

  Window window_;
};

}  // namespace

std::vector<TuneCost> domain_costs(const Ranks& ranks, const Effort& effort) {
  const mpi::Comm world = mpi::comm_world();
  const std::vector<int> nodes = node::nodes_of_ranks(world);
  const std::vector<int> domains = node::domains_of_ranks(world, nodes);
  if (std::ranges::count(domains, domains[0]) == ranks.size()) return {};
  std::optional<Flags> flags;
  try {
    flags.emplace(ranks);
  } catch (const Error& error) {
    // On all ranks: they cannot map each other's memory.
    if (error.code() != ErrorCode::unsupported) throw;
    return {};
  }
  std::vector<TuneCost> all;
  for (const Pair& pair : pairs_of(domains)) {
    flags->reset(ranks);
    const Sample sample = [&](int calls) { return flags->there_and_back(pair, calls); };
    const std::vector<double> us = in_turns(ranks, {sample}, effort)[0];
    all.push_back({"flag", "arena", std::string(pair.name), 0, summarize(us).median / 2});
  }
  return all;
}

}  // namespace ropewalk::bench
