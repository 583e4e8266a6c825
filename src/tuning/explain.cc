// Which path a collective takes, and why: the public half of it.
#include <array>

#include "ropewalk/error.hpp"
#include "settings/value.hpp"
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
constexpr std::array<Subject, 11> subjects{{
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
}};

const Subject& subject(std::string name) {
  for (char& letter : name) {
    if (letter == '-') letter = '_';
  }
  std::string names;
  for (const Subject& one : subjects) {
    if (one.name == name) return one;
    names += (names.empty() ? "" : ", ") + std::string(one.name);
  }
  throw Error(ErrorCode::argument, "collective: found \"" + name + "\", expected one of " + names);
}

Explanation explain(Collective what, std::size_t bytes, const Situation& situation,
                    const Profile& profile) {
  const Facts facts = facts_of(situation.ranks, situation.crowded);
  const Values values(facts, profile);
  Reasons reasons(values);
  if (situation.nodes > 1) {
    reason_over_nodes(reasons, what, bytes, situation);
  } else {
    reason_on_node(reasons, what, bytes, situation);
  }
  return reasons.explain(facts, profile);
}

std::vector<std::string> assumptions(const Situation& situation) {
  std::vector<std::string> all{
      situation.crowded ? "ranks share cores" : "every rank has a core of its own",
      situation.private_memory ? "all buffers are private" : "all buffers are in the arenas"};
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

std::vector<std::string> explained_collectives() {
  std::vector<std::string> names;
  names.reserve(tuning::subjects.size());
  for (const tuning::Subject& one : tuning::subjects) names.emplace_back(one.name);
  return names;
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
  made.assumed = tuning::assumptions(situation);
  return made;
}

}  // namespace ropewalk
