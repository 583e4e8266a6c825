// What brings the faces of a halo from rank to rank. Each way to do that is a class with a file of
// its own: PlanCarrier sends messages, DirectCarrier copies from memory to memory, PutCarrier moves
// nothing; over several nodes, MixedCarrier has one of these inside the node and messages between
// nodes. candidates.cc has the table from which one is chosen.
#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <vector>

#include "ropewalk/endpoint.hpp"

namespace ropewalk::halo {

// So many tests of an exchange go by between two looks at MPI and at the others' lives, which take
// 0.1 to 1 us.
constexpr unsigned tests_per_look = 64;

// The places say where faces are written and read, by turn of the exchange and direction of the
// public interface. They are null where there is no face.
struct Places {
  std::array<std::vector<void*>, 2> send;
  std::array<std::vector<void*>, 2> receive;
};

// Returns null for a direction that does not exist, too.
inline void* place(const std::vector<void*>& places, int direction) noexcept {
  const auto i = static_cast<std::size_t>(direction);
  return i < places.size() ? places[i] : nullptr;
}

struct PartOfFace {
  int direction;
  int part;
};

// An exchange with all neighbours, made once and run often; start, test and wait allocate nothing.
// Its end waits for what was started.
class Carrier {
 public:
  Carrier() = default;
  Carrier(const Carrier&) = delete;
  Carrier& operator=(const Carrier&) = delete;
  virtual ~Carrier() = default;

  virtual void start() = 0;  // not while an exchange is under way
  virtual bool test() = 0;   // true when all faces are there; wait() is still to be called
  virtual bool poll() { return test(); }  // the same, of a caller that comes again at once
  virtual void wait() = 0;

  // What else belongs to the exchange has failed: this rank takes no more part in it, or in any
  // later one, and neighbours that need its faces get an error.
  virtual void give_up() noexcept = 0;

  virtual Strategy strategy() const noexcept = 0;
  virtual std::size_t send_bytes() const noexcept = 0;  // to other ranks, in one exchange

  // Threads of the caller may drive these lanes instead of start() and wait(), each once.
  virtual int lanes() const noexcept { return 1; }
  virtual void exchange_lane(int /*lane*/) {
    start();
    wait();
  }

  // A carrier of faces in parts has these, for any thread: what Halo::ready and Halo::arrived say.
  // Returns false where this rank has handed over the part before in this exchange.
  virtual bool ready(int /*direction*/, int /*part*/) { return false; }
  virtual bool arrived(int /*direction*/, int /*part*/) const { return true; }
  // A part that this rank has not handed over yet; none where the exchange may be waited for.
  virtual std::optional<PartOfFace> missing() const { return {}; }

  // Which of its two places each face had in the exchange that was last started.
  virtual std::size_t turn() const noexcept { return 0; }
  // False once neighbours may be reading what this rank would write its next faces to.
  virtual bool writable() const noexcept { return true; }
  // All ranks have made theirs: from here on a carrier may touch its neighbours when it ends.
  virtual void settle() noexcept {}
};

}  // namespace ropewalk::halo
