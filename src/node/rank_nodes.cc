#include "node/rank_nodes.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "mpi/settings.hpp"
#include "node/domains.hpp"
#include "node/node_number.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::node {

std::vector<int> nodes_of_ranks(mpi::Comm comm) {
  struct Fact {
    char name[128];
    std::int64_t malformed;
    std::uint64_t settings;  // their fingerprint
  };
  Fact own{};
  own.settings = mpi::settings_fingerprint();
  std::string malformed;
  try {
    const std::string name = node_name();
    std::memcpy(own.name, name.data(), std::min(name.size(), sizeof own.name - 1));
  } catch (const Error& error) {
    own.malformed = 1;
    malformed = error.what();
  }
  std::vector<Fact> facts(static_cast<std::size_t>(mpi::size(comm)));
  mpi::all_gather(&own, facts.data(), sizeof own, comm);
  std::vector<std::uint64_t> fingerprints;
  fingerprints.reserve(facts.size());
  for (const Fact& fact : facts) fingerprints.push_back(fact.settings);
  mpi::require_same_settings(comm, fingerprints);
  std::vector<std::string> names;
  for (const Fact& fact : facts) {
    if (fact.malformed != 0) {
      throw Error(ErrorCode::argument,
                  malformed.empty() ? "ROPEWALK_NODES: malformed on another rank" : malformed);
    }
    names.emplace_back(fact.name);
  }
  return number_nodes(names);
}

std::vector<int> number_domains(std::span<const std::int64_t> own, std::span<const int> nodes) {
  const int count = nodes.empty() ? 0 : 1 + *std::ranges::max_element(nodes);
  std::vector<int> out(nodes.size());
  int before = 0;
  for (int node = 0; node < count; ++node) {
    std::vector<std::size_t> ranks;
    std::vector<std::int64_t> numbers;
    for (std::size_t rank = 0; rank < nodes.size(); ++rank) {
      if (nodes[rank] != node) continue;
      ranks.push_back(rank);
      numbers.push_back(own[rank]);
    }
    const Domains domains = group_by(numbers);
    for (std::size_t i = 0; i < ranks.size(); ++i) out[ranks[i]] = before + domains.of[i];
    before += domains.count();
  }
  return out;
}

std::vector<int> domains_of_ranks(mpi::Comm comm, std::span<const int> nodes) {
  const auto rank = static_cast<std::ptrdiff_t>(mpi::rank(comm));
  const auto place =
      std::count(nodes.begin(), nodes.begin() + rank, nodes[static_cast<std::size_t>(rank)]);
  // The setting is the same on all ranks: nodes_of_ranks() has compared it. So all throw or none.
  const std::int64_t own = own_domain(static_cast<int>(place));
  std::vector<std::int64_t> all(nodes.size());
  mpi::all_gather(&own, all.data(), sizeof own, comm);
  return number_domains(all, nodes);
}

}  // namespace ropewalk::node
