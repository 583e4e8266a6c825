// The start of every schedule of a scenario: new teams, and engines with small limits.
#include <algorithm>
#include <memory>
#include <string>
#include <vector>

#include "model/rank.hpp"
#include "model/scenarios.hpp"
#include "ropewalk/error.hpp"

namespace ropewalk::model {
namespace {

collectives::Limits limits(const Scenario& scenario) {
  collectives::Limits limits{};
  limits.one_shot_bytes = 64;
  limits.gathered_bytes = 64;
  limits.rooted_bytes = 64;
  limits.copied_bytes = scenario.copied_bytes;
  limits.piecewise_bytes = scenario.copied_bytes;
  limits.alone_bytes = scenario.copied_bytes;
  limits.piece_bytes = scenario.piece_bytes;
  limits.pushed_bytes = scenario.pushed_bytes;
  limits.streaming_bytes = ~std::size_t{0};
  limits.chunk_bytes = scenario.chunk_bytes;
  limits.cma_bytes = ~std::size_t{0};
  return limits;
}

// A team's control block is the first that its rank allocates.
void name_flags(int rank) {
  auto* control = reinterpret_cast<node::Control*>(arena(rank));
  name_flag(&control->phase, "phase");
  name_flag(&control->staging, "staging");
  name_flag(&control->arrived, "arrived");
  name_flag(&control->pieces, "pieces");
  for (node::Slot& slot : control->slot) name_flag(&slot.sequence, "sequence");
}

std::unique_ptr<collectives::Engine> make_engine(int rank, const Scenario& scenario) {
  set_rank(rank);
  std::string reason;
  auto team = node::Team::create({}, reason);
  name_flags(rank);
  return std::make_unique<collectives::Engine>(std::move(team), limits(scenario));
}

}  // namespace

Result explore(int ranks, const Scenario& scenario, const Options& options) {
  std::vector<std::unique_ptr<collectives::Engine>> engines;
  std::array<TeamBytes, max_ranks> fresh{};
  Program program;
  program.set_up = [&] {
    for (int rank = 0; rank < ranks; ++rank) {
      engines.push_back(make_engine(rank, scenario));
      const auto* team = reinterpret_cast<const std::byte*>(&engines.back()->team());
      std::copy_n(team, sizeof(node::Team), fresh[static_cast<std::size_t>(rank)].begin());
    }
  };
  program.run = [&](int rank) {
    const auto index = static_cast<std::size_t>(rank);
    Rank self{*engines[index], fresh[index], rank, ranks};
    bool thrown = false;
    try {
      scenario.run(self);
    } catch (const Error&) {
      thrown = true;
    }
    if (thrown) fail("gets an error");
  };
  program.tear_down = [&] { engines.clear(); };
  return explore(ranks, program, options);
}

}  // namespace ropewalk::model
