// A rank of the model: its engine and what tells whether two states are alike; the operation that
// it reduces with.
#pragma once

#include <array>
#include <cstddef>

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
