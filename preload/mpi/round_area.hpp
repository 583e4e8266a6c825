// This file has the rooms by which ranks of one node run a persistent collective again and again
// where they copy what they send.
//
// When a rank starts a round, it copies what it sends into its own area, in its arena. When it
// completes the round, it reads what the others have copied into theirs. So a start waits for
// nobody, and a rank that has started keeps nobody waiting, whatever it does then. MPI demands
// both.
//
// An area has two rooms, which take turns. A rank fills a room again only after it has completed
// the round in between. For that it has waited until all others had started that round, and so had
// completed the round before, which was the last that read the room.
#pragma once

#include <array>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "shared_area.hpp"

namespace ropewalk::preload {

// What a rank sends as one block. Blocks that begin at the same address are copied once.
struct SentBlock {
  const std::byte* from;
  std::size_t bytes;
};

class RoundArea {
 public:
  // Takes the memory for a rank of the team that sends these blocks. Throws where there is none.
  RoundArea(Collectives& team, std::span<const SentBlock> sent);

  SharedArea& memory() noexcept { return memory_; }
  // Once the memory is connected: finds the rooms of all ranks.
  void connect() noexcept;

  // Returns how many bytes a rank sends as its block `number`, or -1 where it has no such block.
  std::int64_t bytes_of(int rank, std::size_t number) const noexcept;

  // Begins the round. A rank that cannot send its blocks says so instead.
  void fill(std::uint64_t round, std::span<const SentBlock> sent) noexcept;
  void refuse(std::uint64_t round) noexcept;
  // Whether this rank has begun the round, and whether it has refused it then.
  bool has_begun(int rank, std::uint64_t round) const noexcept {
    // This acquire pairs with the release in begin().
    return room_header(rank, round).round.load(std::memory_order_acquire) == round;
  }
  bool has_refused(int rank, std::uint64_t round) const noexcept {
    return room_header(rank, round).refused == round;
  }
  // Returns where a block of a rank that has begun the round lies. It is the same place two rounds
  // later.
  const std::byte* block(int rank, std::size_t number, std::uint64_t round) const noexcept;

 private:
  // The beginning of a room. Small blocks follow in the same line of the cache.
  struct RoomHeader {
    std::atomic<std::uint64_t> round{0};  // the last that was begun here
    std::uint64_t refused = 0;            // the last that was refused here
  };
  struct PlacedBlock {
    std::uint64_t at;  // behind the beginning of a room
    std::uint64_t bytes;
  };
  struct AreaHeader {
    std::uint64_t blocks = 0;
    std::uint64_t rooms_at = 0;
    std::uint64_t room_bytes = 0;
  };
  struct Plan {
    std::vector<PlacedBlock> blocks;
    AreaHeader header;
  };
  static constexpr std::size_t line = 64;  // bytes of a line of the cache

  static Plan plan_for(std::span<const SentBlock> sent);
  RoundArea(Collectives& team, const Plan& plan);

  const AreaHeader& header(int rank) const noexcept {
    return *reinterpret_cast<const AreaHeader*>(memory_.of(rank));
  }
  const PlacedBlock& placed(int rank, std::size_t number) const noexcept {
    return reinterpret_cast<const PlacedBlock*>(memory_.of(rank) + line)[number];
  }
  std::byte* room(int rank, std::uint64_t round) const noexcept {
    return rooms_[2 * static_cast<std::size_t>(rank) + round % 2];
  }
  RoomHeader& room_header(int rank, std::uint64_t round) const noexcept {
    return *reinterpret_cast<RoomHeader*>(room(rank, round));
  }
  void find_rooms(int rank) noexcept;
  void begin(std::uint64_t round) noexcept;

  SharedArea memory_;
  std::vector<std::byte*> rooms_;  // two of each rank
};

}  // namespace ropewalk::preload
