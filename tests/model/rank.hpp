// A rank of the model: its engine and what tells whether two states are alike; blocks of one
// size; the operation that it reduces with.
#pragma once

#include <array>
#include <cstddef>

#include "collectives/blocks.hpp"
#include "collectives/engine.hpp"
#include "model/model.hpp"
#include "model/tokens.hpp"

namespace ropewalk::model {

using TeamBytes = std::array<std::byte, sizeof(node::Team)>;

struct Rank {
  collectives::Engine& engine;
  const TeamBytes& fresh;  // its team when it was made
  int rank;
  int size;
  // Before each call. What an engine holds beside its team is made anew in each.
  void begin_call() {
    checkpoint(numbers_changed(fresh.data(), &engine.team(), sizeof(node::Team)));
  }
};

struct Equal {  // blocks of one size, one a rank
  explicit Equal(const Rank& rank, std::size_t bytes) {
    for (int peer = 0; peer < rank.size; ++peer) {
      counts[static_cast<std::size_t>(peer)] = bytes;
      displacements[static_cast<std::size_t>(peer)] = static_cast<std::size_t>(peer) * bytes;
    }
  }
  collectives::Blocks blocks() const { return {counts.data(), displacements.data()}; }
  std::array<std::size_t, max_ranks> counts{};
  std::array<std::size_t, max_ranks> displacements{};
};
constexpr std::size_t copied_count = 12;  // elements of a private buffer that is copied

inline const collectives::Operation& addition() {
  static const collectives::Operation operation = [] {
    collectives::Operation made;
    made.type = ElementType::uint64;
    made.element_bytes = sizeof(Element);
    return made;
  }();
  return operation;
}

}  // namespace ropewalk::model
