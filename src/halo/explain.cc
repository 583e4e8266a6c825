// How the faces of a halo travel, and why: what candidates.cc offers and what making.cc refuses, in
// a situation that is described.
#include <algorithm>
#include <array>
#include <limits>
#include <numeric>
#include <utility>

#include "halo/candidate.hpp"
#include "halo/rank_order.hpp"
#include "ropewalk/tuning.hpp"
#include "tuning/reasons.hpp"

namespace ropewalk {
namespace halo {
namespace {

Form form_of(const std::string& layout) {
  constexpr std::array<std::pair<const char*, Form>, 3> forms{
      {{"packets", Form::faces}, {"fields", Form::fields}, {"buffers", Form::buffers}}};
  for (const auto& [name, form] : forms) {
    if (layout == name) return form;
  }
  throw Error(ErrorCode::argument,
              "layout: found \"" + layout + "\", expected packets, fields or buffers");
}

struct Question {
  Strategy wanted;
  Form form;
  const Situation& situation;

  bool offers(decltype(CarrierKind::add) add) const {
    return std::ranges::any_of(carrier_kinds(wanted, form),
                               [&](const CarrierKind& kind) { return kind.add == add; });
  }
  std::string asked_otherwise() const {
    return std::string("strategy ") + name(wanted) + " is asked for";
  }
};

std::string why_no_put(const Question& question) {
  if (question.form != Form::buffers) return "the faces are not in buffers of the halo";
  return question.offers(&add_put) ? "" : question.asked_otherwise();
}

std::string why_no_direct(const Question& question) {
  return question.offers(&add_direct) ? "" : question.asked_otherwise();
}

// What becomes of the faces between ranks of one node, and of the others.
std::string with_messages(const Question& question, const std::string& how) {
  if (question.situation.nodes == 1) return how;
  const bool threads = !question.situation.crowded;
  return "inside a node " + how + "; to other nodes they are messages, which leave first, posted " +
         (threads ? "by comm threads" : "by the caller");
}

// What becomes of faces in private memory.
std::string how_direct(const Question& question) {
  const Situation& situation = question.situation;
  if (!situation.private_memory || question.form == Form::buffers) {
    return "faces are copied from memory to memory, by whoever comes first";
  }
  if (situation.xpmem) {
    return "faces are copied from memory to memory, which is attached (XPMEM), by whoever comes "
           "first";
  }
  return situation.cma ? "large faces in long runs are copied by the kernel (CMA), by whoever "
                         "comes first; others are staged: packed into the sender's arena, from "
                         "where the receiver copies"
                       : "faces are staged: packed into the sender's arena, from where the "
                         "receiver copies";
}

// `automatic` measures two ways of posting them (plan.cc).
std::string why_no_messages(const Question& question, Strategy strategy) {
  if (question.wanted == strategy) return "";
  if (question.wanted != Strategy::automatic) return question.asked_otherwise();
  return strategy == Strategy::sequential ? "automatic does not try it" : "";
}

void add(Explanation& made, Strategy strategy, std::string how, std::string why_not) {
  made.alternatives.push_back(
      {name(strategy), std::move(how), "", why_not.empty(), false, std::move(why_not), "", ""});
}

void add_all(Explanation& made, const Question& question) {
  add(made, Strategy::put,
      with_messages(question, "faces are written where their receiver reads them"),
      why_no_put(question));
  add(made, Strategy::direct, with_messages(question, how_direct(question)),
      why_no_direct(question));
  const std::array<std::pair<Strategy, const char*>, 3> messages{
      {{Strategy::concurrent, "messages, which the caller posts all at once"},
       {Strategy::threaded, "messages, which comm threads post, each those of its lane"},
       {Strategy::sequential, "messages, which the caller posts one direction after the other"}}};
  for (const auto& [strategy, how] : messages) {
    add(made, strategy, how, why_no_messages(question, strategy));
  }
}

void fail(Explanation& made, const Question& question) {
  made.path = "error";
  made.how = "the halo cannot be made";
  for (const Alternative& one : made.alternatives) {
    if (one.path == name(question.wanted)) made.why = one.why;
  }
}

void conclude(Explanation& made, const Question& question) {
  const auto possible = std::ranges::count_if(made.alternatives, &Alternative::possible);
  if (possible == 0) return fail(made, question);
  const bool measured = possible > 1;
  for (Alternative& one : made.alternatives) {
    if (!one.possible) continue;
    one.taken = !measured;
    one.why = measured ? "measured" : question.asked_otherwise();
    if (one.taken) made.path = one.path, made.how = one.how, made.why = one.why;
  }
  if (!measured) return;
  made.path = name(Strategy::automatic);
  made.how = "the one whose slowest rank is fastest in a measurement when the halo is made";
  made.why = "several are possible";
}

// Where the ranks of a situation are: dealt to nodes and domains one after the other.
RankGroups groups_of(const Situation& of) {
  RankGroups out;
  const int domains = std::min(of.domains, of.ranks);
  for (int rank = 0; rank < of.ranks * of.nodes; ++rank) {
    const int node = rank / of.ranks;
    out.nodes.push_back(node);
    out.domains.push_back(node * domains + rank % of.ranks * domains / of.ranks);
  }
  return out;
}

// The faces that each node's ranks send to others, and those of them that leave the node or the
// domain. Links towards + and towards - are as many, and so are the faces that go out and that come
// in.
std::vector<HaloTraffic> traffic_of_nodes(const std::vector<int>& extents,
                                          const std::vector<int>& ranks, const RankGroups& groups) {
  const auto at = [](const std::vector<int>& of, int i) { return of[static_cast<std::size_t>(i)]; };
  std::vector<HaloTraffic> nodes(static_cast<std::size_t>(groups.nodes.back()) + 1);
  for (std::size_t cell = 0; cell < ranks.size(); ++cell) {
    const int rank = ranks[cell];
    HaloTraffic& node = nodes[static_cast<std::size_t>(at(groups.nodes, rank))];
    for (std::size_t d = 0; d < extents.size(); ++d) {
      for (const int step : {1, extents[d] - 1}) {
        std::vector<int> there = coordinates_of(static_cast<int>(cell), extents);
        there[d] = (there[d] + step) % extents[d];
        const int peer = at(ranks, cell_of(there, extents));
        if (peer == rank) continue;
        ++node.faces;
        if (at(groups.nodes, peer) != at(groups.nodes, rank)) {
          ++node.leaving;
        } else if (at(groups.domains, peer) != at(groups.domains, rank)) {
          ++node.crossing;
        }
      }
    }
  }
  return nodes;
}

HaloTraffic most_traffic(const char* order, const std::vector<int>& extents,
                         const std::vector<int>& ranks, std::uint64_t bytes,
                         const RankGroups& groups) {
  const auto weight = [](const HaloTraffic& node) {
    return std::pair(node.leaving, node.crossing);
  };
  HaloTraffic most;
  for (const HaloTraffic& node : traffic_of_nodes(extents, ranks, groups)) {
    if (most.faces == 0 || weight(node) > weight(most)) most = node;
  }
  most.order = order;
  most.bytes = most.leaving * bytes;
  most.crossing_bytes = most.crossing * bytes;
  return most;
}

void check_grid(const std::vector<int>& extents, const Situation& of) {
  std::int64_t product = extents.empty() ? 0 : 1;
  for (const int extent : extents) {
    if (extent < 1) product = 0;
    if (product <= std::numeric_limits<int>::max()) product *= extent;
  }
  const std::int64_t ranks = std::int64_t{of.ranks} * of.nodes;
  if (product == ranks && extents.size() <= CartesianGrid::max_dimensions) return;
  throw Error(ErrorCode::argument, "grid: has " + std::to_string(product) +
                                       " ranks, expected 1 to 6 extents whose product is the " +
                                       std::to_string(ranks) + " ranks of " +
                                       std::to_string(of.nodes) + " nodes");
}

}  // namespace
}  // namespace halo

std::vector<HaloTraffic> halo_traffic(const std::vector<int>& extents, std::uint64_t bytes,
                                      const Situation& situation) {
  tuning::check(situation);
  halo::check_grid(extents, situation);
  const halo::RankGroups groups = halo::groups_of(situation);
  std::vector<int> numbered(groups.nodes.size());
  std::iota(numbered.begin(), numbered.end(), 0);
  const std::vector<bool> periodic(extents.size(), true);
  return {halo::most_traffic("row_major", extents, numbered, bytes, groups),
          halo::most_traffic("by_node", extents, halo::ranks_by_node(extents, periodic, groups),
                             bytes, groups)};
}

Explanation explain_halo(const std::string& layout, Strategy strategy, std::uint64_t bytes,
                         const Situation& situation) {
  tuning::check(situation);
  const halo::Question question{strategy, halo::form_of(layout), situation};
  const tuning::Profile profile = tuning::profile();
  const tuning::Facts facts = tuning::facts_of(situation.ranks, situation.crowded);
  Explanation made;
  halo::add_all(made, question);
  halo::conclude(made, question);
  for (const tuning::Id id : {tuning::Id::halo_streaming, tuning::Id::halo_claimed,
                              tuning::Id::halo_kernel, tuning::Id::halo_kernel_small_pages,
                              tuning::Id::halo_kernel_run, tuning::Id::halo_worker}) {
    made.thresholds.push_back(tuning::threshold(tuning::row(id), facts, profile));
  }
  const bool together = bytes < made.thresholds[1].value;
  made.assumed = {"faces of " + tuning::size_text(bytes) + ", which direct claims " +
                      (together ? "several at a time" : "one by one"),
                  "every rank has a neighbour, and endpoints with comm threads"};
  return made;
}

}  // namespace ropewalk
