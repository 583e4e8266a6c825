// This file has the rooms by which ranks of one node run a persistent collective again and again
// where they copy what they send.
//
// When a rank starts a round, it copies what it sends into its own area, in its arena. When it
// completes the round, it reads what the others have copied into theirs. So a start waits for
// nobody, and a rank that has started keeps nobody waiting, whatever it does then. MPI demands
// both.
//
// An area has several rooms, which take turns. A rank waits for the data of those that it receives
// from, and leaves the round once it has read them. The others it lets fall behind by as many
// rounds as it has rooms: before it completes a round, all must have left the round that was the
// last to read the room it fills next. So the root of a broadcast is ahead of those that receive.
#pragma once

#include <algorithm>
#include <atomic>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

#include "node/control.hpp"
#include "shared_area.hpp"

namespace ropewalk::preload {

// What a rank sends as one block. Blocks that begin at the same address are copied once.
struct SentBlock {
  const std::byte* from;
  std::size_t bytes;
};

class RoundArea {
 public:
  // Takes the memory for a rank of the team that sends these blocks, and that may be `ahead` of
  // some ranks. Throws where there is none.
  RoundArea(Collectives& team, std::span<const SentBlock> sent, bool ahead);

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
  // Returns where a block of a rank lies behind the beginning of the room of each round, and where
  // that begins.
  std::size_t place_of(int rank, std::size_t number) const noexcept {
    return placed(rank, number).at;
  }
  const std::byte* room_of(int rank, std::uint64_t round) const noexcept {
    return room(rank, round);
  }

  // This rank will never look at the rooms of the round again. It tells so once for several rounds
  // of a rank that is ahead, since telling costs both a transfer of the line. This release pairs
  // with the acquire in has_left(): what it has read, it has read before.
  void leave(std::uint64_t round) noexcept {
    if ((round & told_rounds_) != 0) return;
    header(memory_.rank()).left.store(round, std::memory_order_release);
  }
  // Whether a rank has left the last round that reads the room which this rank fills in the next.
  // It asks only where it does not know.
  bool has_left(int rank, std::uint64_t round) noexcept {
    Rooms& known = rooms_[static_cast<std::size_t>(rank)];
    if (known.left + own_rooms() > round) return true;
    known.left = header(rank).left.load(std::memory_order_acquire);
    return known.left + own_rooms() > round;
  }
  // This rank has found a dead one, and takes part in no round any more.
  void fail() noexcept { header(memory_.rank()).failed.store(true, std::memory_order_relaxed); }
  bool has_failed(int rank) const noexcept {
    return header(rank).failed.load(std::memory_order_relaxed);
  }
  // This rank reads the rooms of another.
  void add_source(int rank) noexcept {
    told_rounds_ = std::min(told_rounds_, rooms_[static_cast<std::size_t>(rank)].number / 2 - 1);
  }

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
  struct AreaLayout {
    std::uint64_t blocks = 0;
    std::uint64_t rooms_at = 0;
    std::uint64_t room_bytes = 0;
    std::uint64_t rooms = 2;  // a power of two
  };
  struct AreaHeader {
    alignas(node::flag_stride) std::atomic<std::uint64_t> left{0};  // the last round that was left
    std::atomic<bool> failed{false};
    alignas(node::flag_stride) AreaLayout layout;
  };
  struct Plan {
    std::vector<PlacedBlock> blocks;
    AreaLayout layout;
  };
  // The rooms of a rank, as this process maps them.
  struct Rooms {
    std::byte* first = nullptr;
    std::size_t bytes = 0;  // of each
    std::uint64_t number = 2;
    std::uint64_t left = 0;  // the last round that the rank is known to have left
  };
  static constexpr std::size_t line = 64;  // bytes of a line of the cache

  static Plan plan_for(std::span<const SentBlock> sent, bool ahead);
  RoundArea(Collectives& team, const Plan& plan);

  AreaHeader& header(int rank) const noexcept {
    return *reinterpret_cast<AreaHeader*>(memory_.of(rank));
  }
  const PlacedBlock& placed(int rank, std::size_t number) const noexcept {
    return reinterpret_cast<const PlacedBlock*>(memory_.of(rank) + sizeof(AreaHeader))[number];
  }
  std::uint64_t own_rooms() const noexcept {
    return rooms_[static_cast<std::size_t>(memory_.rank())].number;
  }
  std::byte* room(int rank, std::uint64_t round) const noexcept {
    const Rooms& rooms = rooms_[static_cast<std::size_t>(rank)];
    return rooms.first + (round & (rooms.number - 1)) * rooms.bytes;
  }
  RoomHeader& room_header(int rank, std::uint64_t round) const noexcept {
    return *reinterpret_cast<RoomHeader*>(room(rank, round));
  }
  void find_rooms(int rank) noexcept;
  void begin(std::uint64_t round) noexcept;

  SharedArea memory_;
  std::vector<Rooms> rooms_;                     // by rank
  std::uint64_t told_rounds_ = UINT64_MAX >> 1;  // less one, of a power of two
};

}  // namespace ropewalk::preload
