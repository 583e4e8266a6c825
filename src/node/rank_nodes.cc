#include "node/rank_nodes.hpp"

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string>

#include "mpi/settings.hpp"
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

}  // namespace ropewalk::node
