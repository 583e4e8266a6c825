// This file says what a rank sends and receives in one round of a collective that is set up first
// and carried out later: in each round of a persistent one, and once in a nonblocking one.
#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "collectives/operation.hpp"
#include "kept_elements.hpp"
#include "round_area.hpp"
#include "round_tasks.hpp"

namespace ropewalk::preload {

// What this rank sends and receives in each round.
struct RoundPlan {
  std::vector<SentBlock> sent;
  std::vector<ReceivedBlock> received;
  // The blocks received are combined into the first one's place, in their order. Otherwise each is
  // copied.
  std::optional<collectives::Operation> operation;
  // What this rank receives takes the place of what it sends to others.
  bool overwrites = false;
  // No rank is over a round before all have begun it.
  bool waits_for_all = false;
  // The ranks that get the blocks sent; where it is empty, block k is for rank k.
  std::vector<int> destinations{};
  // A reduction of which the ranks may share the work.
  std::optional<SharedReduction> shared;
  // Where datatypes may have gaps: what is packed before a round, and unpacked after it.
  std::shared_ptr<KeptBlocks> packed;
  std::shared_ptr<KeptBlocks> unpacked;
  // Where each block has a type of its own: the elements of those sent, and of those received.
  std::vector<collectives::TypedPart> sent_parts;
  std::vector<collectives::TypedPart> received_parts;
  bool typed = false;

  // What the ranks share where their memory is mapped.
  RoundWork work() const noexcept {
    return {sent, received, shared ? &*shared : nullptr, typed, sent_parts, received_parts};
  }
  // By rank: whether this one receives from it, or waits for it.
  std::vector<bool> sources(int size) const;
  // Takes the blocks received from where they lie now, by number.
  void receive(std::span<const void* const> inputs) const;
};

}  // namespace ropewalk::preload
