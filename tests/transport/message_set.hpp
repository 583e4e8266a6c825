// Random sets of messages among ranks, made alike on every rank from a seed, and the naive
// expectation: what each receive buffer must hold, computed without any communication.
#pragma once

#include <cstddef>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "ropewalk/endpoint.hpp"

namespace ropewalk::test {

struct SetShape {
  int messages = 20;
  std::size_t most_bytes = 5000;
  int lanes = 1;
  int steps = 3;
};

class MessageSet {
 public:
  MessageSet(unsigned seed, int ranks, int rank, const SetShape& shape) {
    std::mt19937 random(seed);
    for (int i = 0; i < shape.messages; ++i) add(random, i, ranks, rank, shape);
  }

  // Messages of this rank in the order of the global list: the same order on both sides.
  std::vector<Message> messages() {
    std::vector<Message> result;
    for (Slot& slot : slots_) {
      result.push_back({slot.kind, slot.bytes.data() + guard, slot.bytes.size() - 2 * guard,
                        slot.peer, slot.tag, slot.lane, slot.step});
    }
    return result;
  }

  void fill(int iteration) {
    for (Slot& slot : slots_) {
      for (std::byte& byte : slot.bytes) byte = guard_byte;
      if (slot.kind == Message::Kind::receive) continue;
      for (std::size_t i = guard; i < slot.bytes.size() - guard; ++i) {
        slot.bytes[i] = expected(slot.id, i - guard, iteration);
      }
    }
  }

  // What is wrong with the first receive buffer that is, or "".
  std::string check(int iteration) const {
    for (const Slot& slot : slots_) {
      if (slot.kind == Message::Kind::send) continue;
      for (std::size_t i = 0; i < slot.bytes.size(); ++i) {
        const bool inside = i >= guard && i < slot.bytes.size() - guard;
        const std::byte want = inside ? expected(slot.id, i - guard, iteration) : guard_byte;
        if (slot.bytes[i] != want) return complaint(slot, i);
      }
    }
    return "";
  }

  std::size_t send_bytes() const {
    std::size_t sum = 0;
    for (const Slot& slot : slots_) {
      if (slot.kind == Message::Kind::send) sum += slot.bytes.size() - 2 * guard;
    }
    return sum;
  }

 private:
  static constexpr std::size_t guard = 64;  // bytes before and after that nobody may touch
  static constexpr std::byte guard_byte{0xA5};

  struct Slot {
    Message::Kind kind;
    int id;
    int peer;
    int tag;
    int lane;
    int step;
    std::vector<std::byte> bytes;
  };

  static std::byte expected(int id, std::size_t i, int iteration) {
    const std::size_t value = static_cast<std::size_t>(id) * 131 + i * 7 + (i >> 8) * 13 +
                              static_cast<unsigned>(iteration) * 29;
    return static_cast<std::byte>(value & 0xFF);
  }

  static std::string complaint(const Slot& slot, std::size_t i) {
    return "message " + std::to_string(slot.id) + " from rank " + std::to_string(slot.peer) +
           ", tag " + std::to_string(slot.tag) + ": wrong byte at " +
           std::to_string(static_cast<std::ptrdiff_t>(i) - static_cast<std::ptrdiff_t>(guard)) +
           " of " + std::to_string(slot.bytes.size() - 2 * guard);
  }

  // The remainder, not a distribution: those differ between standard libraries.
  static int below(std::mt19937& random, int end) {
    return static_cast<int>(random() % static_cast<unsigned>(end));
  }

  static std::size_t some_bytes(std::mt19937& random, std::size_t most) {
    switch (random() % 4) {
      case 0:
        return random() % 3;  // empty and tiny ones
      case 1:
        return random() % 200;
      case 2:
        return random() % (most / 16 + 1);
      default:
        return random() % (most + 1);
    }
  }

  void add(std::mt19937& random, int id, int ranks, int rank, const SetShape& shape) {
    const int source = below(random, ranks);
    const int destination = below(random, ranks);
    const int tag = below(random, 5);  // few: several messages share peer and tag
    const int lane = below(random, 3) == 0 ? below(random, shape.lanes) : -1;
    const int step = below(random, shape.steps);
    const std::size_t bytes = some_bytes(random, shape.most_bytes) + 2 * guard;
    if (source == rank) {
      slots_.push_back(
          {Message::Kind::send, id, destination, tag, lane, step, std::vector<std::byte>(bytes)});
    }
    if (destination == rank) {
      slots_.push_back(
          {Message::Kind::receive, id, source, tag, lane, step, std::vector<std::byte>(bytes)});
    }
  }

  std::vector<Slot> slots_;
};

}  // namespace ropewalk::test
