// A rank of the model: its channel, and what tells whether two states are alike.
#pragma once

#include <array>
#include <cstdint>

namespace ropewalk::messages {
class MessageEngine;
struct MessageOperation;
}  // namespace ropewalk::messages

namespace ropewalk::model::messages {

struct Rank {
  ropewalk::messages::MessageEngine& engine;
  int rank;
  int size;
  std::uint64_t step = 0;  // of the scenario, and what it remembers
  std::array<const ropewalk::messages::MessageOperation*, 2> under_way{};
  bool withdraws = false;  // a message, now

  // Behind each step of the scenario.
  void note_step(std::uint64_t remembered = 0);
};

// Says what the rank that runs remembers. Beside the operations that are under way, all follows
// from the step and from the flags that it has seen: a channel holds the numbers of cells that were
// taken and of messages that were kept, in its order.
std::uint64_t remembered();
bool is_withdrawing();

}  // namespace ropewalk::model::messages
