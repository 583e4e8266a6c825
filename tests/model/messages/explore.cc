// How every schedule of a scenario begins: new channels.
#include <array>
#include <cstddef>
#include <memory>
#include <vector>

#include "messages/engine.hpp"
#include "model/messages/rank.hpp"
#include "model/messages/scenarios.hpp"

namespace ropewalk::model::messages {
namespace {

using ropewalk::messages::Board;
using ropewalk::messages::Cell;
using ropewalk::messages::MessageEngine;
using ropewalk::messages::MessageOperation;
using ropewalk::messages::MessageProgress;
using ropewalk::messages::MessageRing;
using ropewalk::messages::PeerLine;
using ropewalk::messages::Transfer;

constexpr std::size_t ring_alignment = 4096;

FlagFacts describe_transfer(std::size_t offset) {
  switch (offset) {
    case offsetof(Transfer, state):
      return {"state", false};
    case offsetof(Transfer, unclaimed):
      return {"unclaimed", false};
    case offsetof(Transfer, sent):
      return {"sent", true};
    case offsetof(Transfer, received):
      return {"received", false};  // the sender resets it
    default:
      return {};
  }
}

FlagFacts describe_board(std::size_t offset) {
  if (offset == offsetof(Board, ended)) return {"ended", true};
  const std::size_t in_line = (offset - sizeof(Board)) % sizeof(PeerLine);
  if (in_line == offsetof(PeerLine, left)) return {"left", false};
  return {in_line == offsetof(PeerLine, taken) ? "taken" : "ring", true};
}

// A rank's board is its first block, and rings alone are so long or begin on pages.
FlagFacts describe(const FlagPlace& flag) {
  if (flag.block == 0) return describe_board(flag.offset);
  const bool is_ring = flag.block_bytes == sizeof(MessageRing) && flag.block % ring_alignment == 0;
  return is_ring ? FlagFacts{"number", true} : describe_transfer(flag.offset);
}

std::array<const Rank*, max_ranks> selves{};

std::uint64_t hash_of(const MessageOperation& operation) {
  const MessageProgress& progress = operation.progress;
  std::uint64_t hash = progress.number;
  for (const bool each : {operation.complete, operation.posted, operation.error.has_value(),
                          progress.answered, progress.failed, progress.buffer != nullptr}) {
    hash = mix(hash, each ? 1 : 0);
  }
  hash = mix(hash, static_cast<std::uint64_t>(progress.way));
  hash = mix(hash, progress.done);
  hash = mix(hash, progress.emptied);
  hash = mix(hash, progress.seen_sent);
  hash = mix(hash, static_cast<std::uint64_t>(operation.status.source));
  return mix(hash, static_cast<std::uint64_t>(operation.status.tag));
}

void run(MessageEngine& engine, const Scenario& scenario, int rank) {
  Rank self{engine, rank, scenario.ranks};
  selves[static_cast<std::size_t>(rank)] = &self;
  bool thrown = false;
  try {
    scenario.run(self);
  } catch (const Error&) {
    thrown = true;
  }
  if (thrown) fail("gets an error");
}

}  // namespace

void Rank::note_step(std::uint64_t more) {
  step = mix(step + 1, more);
  under_way = {};
  checkpoint_at(remembered());
}

std::uint64_t remembered() {
  const Rank& self = *selves[static_cast<std::size_t>(model::rank())];
  std::uint64_t hash = mix(self.step, hash_of_seen());
  for (const MessageOperation* operation : self.under_way) {
    hash = mix(hash, operation != nullptr ? hash_of(*operation) : 0);
  }
  return hash;
}

bool is_withdrawing() { return selves[static_cast<std::size_t>(model::rank())]->withdraws; }

Result explore(const Scenario& scenario, const Options& options) {
  std::vector<std::shared_ptr<MessageEngine>> engines;
  Program program;
  program.describe = describe;
  program.pauses = true;
  program.set_up = [&] {
    for (int rank = 0; rank < scenario.ranks; ++rank) {
      set_rank(rank);
      engines.push_back(MessageEngine::create({}, {.force = scenario.force}));
    }
  };
  program.run = [&](int rank) { run(*engines[static_cast<std::size_t>(rank)], scenario, rank); };
  program.tear_down = [&] { engines.clear(); };
  return model::explore(scenario.ranks, program, options);
}

}  // namespace ropewalk::model::messages
