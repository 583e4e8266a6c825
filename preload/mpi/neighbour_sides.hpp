// The arguments of an exchange between neighbours, from MPI's to the collectives'. A nonblocking
// exchange keeps them, and the neighbourhood, until it is over.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "collectives/typed.hpp"
#include "neighbourhood.hpp"
#include "sides.hpp"
#include "typed_sides.hpp"

namespace ropewalk::preload {

// A block for each neighbour there is, as MPI's arguments say where: block(k) is {count, place}.
struct Place {
  std::int64_t count;
  std::int64_t displacement;
};
// A rank without neighbours has arrays, too, of which nothing is read.
struct NeighbourLayout {
  // `is_there(k)`: there is a neighbour for block k.
  template <class IsThere, class Block>
  NeighbourLayout(std::size_t number, IsThere is_there, Block block)
      : blocks(static_cast<int>(number)), counts(number + 1), displacements(number + 1) {
    for (std::size_t k = 0; k < number; ++k) {
      const Place place = is_there(k) ? block(k) : Place{0, 0};
      counts[k] = place.count;
      displacements[k] = place.displacement;
    }
  }
  int blocks;
  std::vector<std::int64_t> counts;
  std::vector<std::int64_t> displacements;
};

// What block k is: one of equal blocks, the same for all neighbours or each behind the one before,
// or one as the arrays say.
template <class Number>
auto equal_places(Number count, bool same) {
  return [=](std::size_t k) {
    return Place{count, same ? 0 : static_cast<std::int64_t>(k) * count};
  };
}
template <class Number>
auto any_places(const Number* counts, const Number* displacements) {
  // No arrays: a count that MPI refuses.
  const bool given = counts != nullptr && displacements != nullptr;
  return [=](std::size_t k) { return given ? Place{counts[k], displacements[k]} : Place{-1, 0}; };
}

// Blocks of one type on each side.
class NeighbourSides {
 public:
  template <class Sends, class Receives>
  NeighbourSides(const Neighbourhood& around, const void* send, Word send_type, Sends sends,
                 void* receive, Word receive_type, Receives receives)
      : out_(
            around.destinations.size(), [&](std::size_t k) { return around.sends(k); }, sends),
        in_(
            around.incoming.size(), [&](std::size_t k) { return around.receives(k); }, receives),
        from_(send, out_.counts.data(), out_.displacements.data(), send_type, out_.blocks),
        to_(receive, in_.counts.data(), in_.displacements.data(), receive_type, in_.blocks) {}

  // False where MPI must judge the arguments.
  bool usable() const noexcept { return from_.usable() && to_.usable(); }
  void exchange(Collectives& team, const Neighbourhood& around) const {
    collectives::typed::neighbours(team, around.ranks(), from_.buffers(), to_.buffers());
  }

 private:
  NeighbourLayout out_;
  NeighbourLayout in_;
  Sides from_;
  Sides to_;
};

// Each block has a type of its own.
class TypedNeighbourSides {
 public:
  template <class Number>
  TypedNeighbourSides(const Neighbourhood& around, const void* send, const Number* send_counts,
                      const Count* send_displacements, const void* send_types, void* receive,
                      const Number* counts, const Count* displacements, const void* types)
      : from_(send, send_counts, send_displacements, send_types, around.destinations.size(),
              [&](std::size_t k) { return around.sends(k); }),
        to_(receive, counts, displacements, types, around.incoming.size(),
            [&](std::size_t k) { return around.receives(k); }) {}

  bool usable() const noexcept { return from_.usable() && to_.usable(); }
  void exchange(Collectives& team, const Neighbourhood& around) const {
    collectives::typed::neighbours(team, around.ranks(), from_.parts(), to_.parts());
  }
  std::span<const collectives::TypedPart> sent() const noexcept { return from_.parts(); }
  std::span<const collectives::TypedPart> received() const noexcept { return to_.parts(); }

 private:
  TypedSides from_;
  TypedSides to_;
};

// Both sides of an alltoallw. In place, what is sent is what is received.
class AlltoallwSides {
 public:
  template <class Number, class Place>
  AlltoallwSides(int ranks, const void* send, const Number* send_counts,
                 const Place* send_displacements, const void* send_types, void* receive,
                 const Number* counts, const Place* displacements, const void* types)
      : in_place_(collectives::is_in_place(send)),
        from_(send, send_counts, send_displacements, send_types, in_place_ ? 0 : ranks),
        to_(receive, counts, displacements, types, ranks) {}

  bool usable() const noexcept { return from_.usable() && to_.usable(); }
  void exchange(Collectives& team) const {
    collectives::typed::alltoallw(team, in_place_ ? to_.parts() : from_.parts(), to_.parts(),
                                  in_place_);
  }
  bool in_place() const noexcept { return in_place_; }
  std::span<const collectives::TypedPart> sent() const noexcept {
    return in_place_ ? to_.parts() : from_.parts();
  }
  std::span<const collectives::TypedPart> received() const noexcept { return to_.parts(); }

 private:
  bool in_place_;
  TypedSides from_;
  TypedSides to_;
};

}  // namespace ropewalk::preload
