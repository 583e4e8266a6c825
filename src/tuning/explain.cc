// Which path a collective takes, and why: the public half of it.
#include <algorithm>
#include <array>
#include <cctype>
#include <utility>

#include "ropewalk/error.hpp"
#include "settings/value.hpp"
#include "topology/signature.hpp"
#include "tuning/limits.hpp"
#include "tuning/on_node.hpp"
#include "tuning/over_nodes.hpp"
#include "tuning/reasons.hpp"

namespace ropewalk {
namespace tuning {
namespace {

struct Subject {
  std::string_view name;
  Collective what;
  std::string_view size;
};
constexpr std::array<Subject, 15> subjects{{
    {"barrier", Collective::barrier, "nothing"},
    {"broadcast", Collective::broadcast, "the vector"},
    {"reduce", Collective::reduce, "the vector"},
    {"allreduce", Collective::allreduce, "the vector"},
    {"scan", Collective::scan, "the vector"},
    {"exscan", Collective::exscan, "the vector"},
    {"reduce_scatter", Collective::reduce_scatter, "the vector"},
    {"allgather", Collective::allgather, "a block"},
    {"gather", Collective::gather, "a block"},
    {"scatter", Collective::scatter, "a block"},
    {"alltoall", Collective::alltoall, "a block"},
    {"allgatherv", Collective::allgatherv, "a block"},
    {"gatherv", Collective::gatherv, "a block"},
    {"scatterv", Collective::scatterv, "a block"},
    {"alltoallv", Collective::alltoallv, "a block"},
}};

// MPI's names, where these are others.
constexpr std::array<std::pair<std::string_view, std::string_view>, 2> aliases{
    {{"bcast", "broadcast"}, {"reduce_scatter_block", "reduce_scatter"}}};

// Null: no collective has that name.
const Subject* find_subject(std::string name) {
  for (char& letter : name) {
    letter = letter == '-' ? '_' : static_cast<char>(std::tolower(letter));
  }
  constexpr std::string_view prefix = "mpi_";
  if (name.starts_with(prefix)) name.erase(0, prefix.size());
  for (const auto& [alias, meant] : aliases) {
    if (name == alias) name = meant;
  }
  const auto* const found = std::ranges::find(subjects, name, &Subject::name);
  return found == subjects.end() ? nullptr : found;
}

const Subject& subject(const std::string& name) {
  if (const Subject* found = find_subject(name)) return *found;
  std::string names;
  for (const Subject& one : subjects) {
    names += (names.empty() ? "" : ", ") + std::string(one.name);
  }
  throw Error(ErrorCode::argument, "collective: found \"" + name + "\", expected one of " + names);
}

Explanation explain(Collective what, std::size_t bytes, const Situation& situation,
                    const Profile& profile) {
  Facts facts = facts_of(situation.ranks, situation.crowded);
  facts.openmpi = situation.int_counts;  // it is the MPI that has no others
  const Values values(facts, profile);
  Reasons reasons(values);
  if (situation.nodes > 1) {
    reason_over_nodes(reasons, what, bytes, situation);
  } else {
    reason_on_node(reasons, what, bytes, situation);
  }
  return reasons.explain(facts, profile);
}

bool has_blocks_of_any_size(Collective what) {
  return what == Collective::allgatherv || what == Collective::gatherv ||
         what == Collective::scatterv || what == Collective::alltoallv;
}

std::vector<std::string> assumptions(Collective what, const Situation& situation) {
  std::vector<std::string> all{
      situation.crowded ? "ranks share cores" : "every rank has a core of its own",
      situation.private_memory ? "all buffers are private" : "all buffers are in the arenas"};
  if (has_blocks_of_any_size(what)) {
    all.emplace_back("all blocks have this size");
    if (situation.nodes > 1) {
      all.emplace_back(situation.int_counts ? "the MPI's counts are ints"
                                            : "the MPI has calls of large counts (MPI 4)");
    }
  }
  if (situation.nodes > 1) {
    all.emplace_back("inside a node, parts of the call go as calls on one node do");
    return all;
  }
  if (situation.private_memory) {
    all.emplace_back(situation.cma ? "the kernel lets ranks read each other (CMA)"
                                   : "the kernel does not let ranks read each other (no CMA)");
    all.emplace_back(situation.xpmem ? "every rank has XPMEM" : "no rank has XPMEM");
  }
  all.emplace_back(situation.domains == 1 ? "one cache domain"
                                          : std::to_string(situation.domains) + " cache domains");
  return all;
}

}  // namespace
}  // namespace tuning

std::vector<Threshold> thresholds(const Situation& situation) {
  tuning::check(situation);
  const tuning::Profile profile = tuning::profile();
  const tuning::Facts facts = tuning::facts_of(situation.ranks, situation.crowded);
  std::vector<Threshold> all;
  for (const tuning::Row& row : tuning::table()) {
    all.push_back(tuning::threshold(row, facts, profile));
  }
  return all;
}

std::string refused_profile() {
  static_cast<void>(tuning::profile());
  return topology::refusal_of_profile();
}

std::vector<std::string> explained_collectives() {
  std::vector<std::string> names;
  names.reserve(tuning::subjects.size());
  for (const tuning::Subject& one : tuning::subjects) names.emplace_back(one.name);
  return names;
}

std::string explained_name(const std::string& collective) {
  const tuning::Subject* found = tuning::find_subject(collective);
  return found == nullptr ? "" : std::string(found->name);
}

std::string explained_size(const std::string& collective) {
  return std::string(tuning::subject(collective).size);
}

Explanation explain_collective(const std::string& collective, std::uint64_t bytes,
                               const Situation& situation) {
  tuning::check(situation);
  const tuning::Collective what = tuning::subject(collective).what;
  const tuning::Profile profile = tuning::profile();
  const auto explain = [&](std::size_t size) {
    return tuning::explain(what, size, situation, profile);
  };
  Explanation made = explain(bytes);
  tuning::find_changes(made, bytes, explain);
  made.assumed = tuning::assumptions(what, situation);
  return made;
}

}  // namespace ropewalk
