// A rank of the model: its engine and what tells whether two states are alike.
#pragma once

#include <array>
#include <cstddef>

#include "collectives/engine.hpp"
#include "model/model.hpp"

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

}  // namespace ropewalk::model
