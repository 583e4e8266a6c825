#include "transport/agreement.hpp"

#include <algorithm>
#include <cstdio>
#include <string>
#include <type_traits>
#include <unordered_map>

#include "mpi/settings.hpp"
#include "node/node_number.hpp"
#include "os/file.hpp"
#include "os/hash.hpp"
#include "os/node_identity.hpp"
#include "settings/value.hpp"
#include "tuning/profile.hpp"

namespace ropewalk::transport {
namespace {

static_assert(std::is_trivially_copyable_v<EndpointFacts>);

// Boyle et al. ran up to eight comm threads a rank; more never won on a measured network.
constexpr int most_automatic_lanes = 8;

// What cannot be understood is told to all ranks as it is.
template <std::size_t N>
std::int64_t read_number(settings::Id id, char (&text)[N]) {
  const settings::Value value = settings::read(id);
  if (!value.malformed) return value.number;
  std::snprintf(text, N, "%s", value.text.data());
  return -1;
}

const char* level_name(std::int32_t level) {
  switch (static_cast<mpi::ThreadLevel>(level)) {
    case mpi::ThreadLevel::single:
      return "MPI_THREAD_SINGLE";
    case mpi::ThreadLevel::funneled:
      return "MPI_THREAD_FUNNELED";
    case mpi::ThreadLevel::serialized:
      return "MPI_THREAD_SERIALIZED";
    case mpi::ThreadLevel::multiple:
      return "MPI_THREAD_MULTIPLE";
  }
  return "an unknown thread level";
}

bool has_multiple(const EndpointFacts& facts) {
  return facts.thread_level >= static_cast<std::int32_t>(mpi::ThreadLevel::multiple);
}

// Returns the first rank for which `wrong` holds, or -1.
template <class Wrong>
int first_rank(std::span<const EndpointFacts> facts, Wrong wrong) {
  const auto found = std::find_if(facts.begin(), facts.end(), wrong);
  return found == facts.end() ? -1 : static_cast<int>(found - facts.begin());
}

template <class Value>
void check_equal(std::span<const EndpointFacts> facts, const char* argument, Value value) {
  const auto expected = value(facts[0]);
  const int rank =
      first_rank(facts, [&](const EndpointFacts& other) { return value(other) != expected; });
  if (rank < 0) return;
  throw Error(ErrorCode::argument,
              std::string(argument) + ": " +
                  std::to_string(value(facts[static_cast<std::size_t>(rank)])) + " on rank " +
                  std::to_string(rank) + " but " + std::to_string(expected) +
                  " on rank 0; pass the same on all ranks of the communicator");
}

void check_range(std::span<const EndpointFacts> facts) {
  const int rank = first_rank(facts, [](const EndpointFacts& other) {
    return other.lanes < 0 || other.lanes > EndpointSet::max_lanes;
  });
  if (rank < 0) return;
  throw Error(ErrorCode::argument,
              "lanes: " + std::to_string(facts[static_cast<std::size_t>(rank)].lanes) +
                  " on rank " + std::to_string(rank) + ", expected 1 to " +
                  std::to_string(EndpointSet::max_lanes) + "; pass 0 for an automatic choice");
}

[[noreturn]] void refuse(settings::Id id, const char* found, int rank) {
  const settings::Text text = settings::complaint(settings::parse(id, found));
  throw Error(ErrorCode::argument,
              text.c_str() + std::string(" (found on rank ") + std::to_string(rank) + ")");
}

void check_wish(std::span<const EndpointFacts> facts) {
  const int rank = first_rank(facts, [](const EndpointFacts& other) { return other.wish < 0; });
  if (rank < 0) return;
  refuse(settings::Id::lanes, facts[static_cast<std::size_t>(rank)].wish_text, rank);
}

// All ranks cut alike: one that wants no pieces gets none.
std::size_t piece_bytes(std::span<const EndpointFacts> facts) {
  const int rank =
      first_rank(facts, [](const EndpointFacts& other) { return other.piece_bytes < 0; });
  if (rank >= 0) {
    refuse(settings::Id::piece_bytes, facts[static_cast<std::size_t>(rank)].piece_text, rank);
  }
  const auto least = std::min_element(
      facts.begin(), facts.end(),
      [](const EndpointFacts& a, const EndpointFacts& b) { return a.piece_bytes < b.piece_bytes; });
  return static_cast<std::size_t>(least->piece_bytes);
}

void check_thread_level(std::span<const EndpointFacts> facts, int lanes) {
  if (facts[0].threads == 0 && lanes == 1) return;
  const int rank =
      first_rank(facts, [](const EndpointFacts& other) { return !has_multiple(other); });
  if (rank < 0) return;
  throw Error(ErrorCode::unsupported,
              std::string("thread level: rank ") + std::to_string(rank) + " has " +
                  level_name(facts[static_cast<std::size_t>(rank)].thread_level) +
                  ", expected MPI_THREAD_MULTIPLE for comm threads or more than one lane; start "
                  "MPI with MPI_Init_thread(MPI_THREAD_MULTIPLE), or use one lane without threads");
}

bool share_cores(const EndpointFacts& a, const EndpointFacts& b) {
  return a.node == b.node && a.cores_hash == b.cores_hash;
}

int neighbours_of(std::span<const EndpointFacts> facts, const EndpointFacts& own) {
  return static_cast<int>(
      std::count_if(facts.begin(), facts.end(),
                    [&](const EndpointFacts& other) { return share_cores(own, other); }));
}

// Shares the cores that ranks leave free out among them.
int lanes_for(std::span<const EndpointFacts> facts, const EndpointFacts& own) {
  if (own.wish > 0) return own.wish;
  if (own.threads == 0 && !has_multiple(own)) return 1;
  if (own.tuned_lanes > 0) return own.tuned_lanes;
  const int neighbours = neighbours_of(facts, own);
  return std::clamp((own.cores - neighbours) / neighbours, 1, most_automatic_lanes);
}

bool same_position(const EndpointFacts& a, const EndpointFacts& b) {
  return share_cores(a, b) && a.wish == b.wish && a.thread_level == b.thread_level;
}

int automatic_lanes(std::span<const EndpointFacts> facts) {
  int lanes = EndpointSet::max_lanes;
  for (std::size_t i = 0; i < facts.size(); ++i) {
    // Ranks with the cores of the one before come to its answer: keeps thousands of ranks linear.
    if (i > 0 && same_position(facts[i], facts[i - 1])) continue;
    lanes = std::min(lanes, lanes_for(facts, facts[i]));
  }
  return lanes;
}

// Numbers the nodes by their lowest ranks.
std::vector<int> nodes_of(std::span<const EndpointFacts> facts) {
  std::unordered_map<std::uint64_t, int> seen;
  std::vector<int> out;
  out.reserve(facts.size());
  for (const EndpointFacts& rank : facts) {
    out.push_back(seen.try_emplace(rank.memory, static_cast<int>(seen.size())).first->second);
  }
  return out;
}

}  // namespace

EndpointFacts local_facts(const EndpointOptions& options, std::span<const int> cores) {
  EndpointFacts facts;
  // The booted kernel, whatever containers the ranks are in: they share its cores all the same.
  const std::string node =
      os::read_text("/proc/sys/kernel/random/boot_id").value_or(os::node_identity());
  const tuning::Values values({}, tuning::profile());
  facts.split_bytes = options.split_bytes.value_or(values[tuning::Id::transport_split]);
  facts.tuned_lanes = static_cast<std::int32_t>(values[tuning::Id::transport_lanes]);
  facts.piece_bytes = options.piece_bytes < 0
                          ? read_number(settings::Id::piece_bytes, facts.piece_text)
                          : options.piece_bytes;
  facts.node = os::hash_bytes(node.data(), node.size());
  const std::string shares_memory = node::node_name();
  facts.memory = os::hash_bytes(shares_memory.data(), shares_memory.size());
  facts.cores_hash = os::hash_bytes(cores.data(), cores.size_bytes());
  facts.cores = static_cast<std::int32_t>(cores.size());
  facts.lanes = options.lanes;
  facts.threads = options.threads ? 1 : 0;
  facts.thread_level = static_cast<std::int32_t>(mpi::thread_level());
  facts.wish = static_cast<std::int32_t>(read_number(settings::Id::lanes, facts.wish_text));
  facts.settings = mpi::settings_fingerprint();
  return facts;
}

Agreement judge(std::span<const EndpointFacts> facts, int rank) {
  check_range(facts);
  check_equal(facts, "lanes", [](const EndpointFacts& f) { return f.lanes; });
  check_equal(facts, "threads", [](const EndpointFacts& f) { return f.threads; });
  check_equal(facts, "split_bytes", [](const EndpointFacts& f) { return f.split_bytes; });
  Agreement agreement;
  agreement.split_bytes = static_cast<std::size_t>(facts[0].split_bytes);
  agreement.lanes = facts[0].lanes;
  if (agreement.lanes == 0) {
    check_wish(facts);
    agreement.lanes = automatic_lanes(facts);
  }
  check_thread_level(facts, agreement.lanes);
  agreement.piece_bytes = piece_bytes(facts);
  const EndpointFacts& own = facts[static_cast<std::size_t>(rank)];
  agreement.neighbours = neighbours_of(facts, own);
  agreement.position = neighbours_of(facts.first(static_cast<std::size_t>(rank)), own);
  agreement.beside = static_cast<int>(std::ranges::count(facts, own.node, &EndpointFacts::node));
  agreement.nodes = nodes_of(facts);
  return agreement;
}

Agreement agree(mpi::Comm comm, const EndpointFacts& own) {
  std::vector<EndpointFacts> facts(static_cast<std::size_t>(mpi::size(comm)));
  mpi::all_gather(&own, facts.data(), sizeof(EndpointFacts), comm);
  std::vector<std::uint64_t> fingerprints;
  fingerprints.reserve(facts.size());
  for (const EndpointFacts& rank : facts) fingerprints.push_back(rank.settings);
  mpi::require_same_settings(comm, fingerprints);
  return judge(facts, mpi::rank(comm));
}

std::vector<int> cores_of_lane(std::span<const int> cores, int lane, int lanes, int position,
                               int neighbours) {
  const auto wanted = static_cast<std::size_t>(lanes) * static_cast<std::size_t>(neighbours);
  if (wanted > cores.size()) return {cores.begin(), cores.end()};
  const auto from_end = static_cast<std::size_t>(position) * static_cast<std::size_t>(lanes) +
                        static_cast<std::size_t>(lane);
  return {cores[cores.size() - 1 - from_end]};
}

std::vector<int> with_last(std::span<const int> cores, std::span<const int> last) {
  std::vector<int> out(cores.begin(), cores.end());
  std::stable_partition(out.begin(), out.end(), [&](int core) {
    return std::find(last.begin(), last.end(), core) == last.end();
  });
  return out;
}

}  // namespace ropewalk::transport
