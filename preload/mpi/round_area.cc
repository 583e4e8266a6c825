#include "round_area.hpp"

#include <cstring>
#include <new>

#include "kernels/kernels.hpp"
#include "os/relax.hpp"

namespace ropewalk::preload {
namespace {

constexpr std::uint64_t most_rooms_ahead = 8;
constexpr std::uint64_t most_rooms_together = 4;
constexpr std::size_t most_bytes_of_rooms = std::size_t{32} << 10;

constexpr std::size_t up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

bool follows(const SentBlock& block, const SentBlock& before) noexcept {
  return block.from == before.from && block.bytes == before.bytes;
}

}  // namespace

// The rooms fit the first cache together, where there are more than two. With four, the next one is
// free when a round begins.
RoundArea::Plan RoundArea::plan_for(std::span<const SentBlock> sent, bool ahead) {
  Plan plan;
  std::size_t end = sizeof(RoomHeader);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (i > 0 && follows(sent[i], sent[i - 1])) {
      plan.blocks.push_back(plan.blocks.back());
      continue;
    }
    // Beside the header, or in whole lines.
    if (end % line + sent[i].bytes > line) end = up(end, line);
    plan.blocks.push_back({end, sent[i].bytes});
    end = up(end + sent[i].bytes, sizeof(RoomHeader));
  }
  plan.layout = {sent.size(), up(sizeof(AreaHeader) + sent.size() * sizeof(PlacedBlock), line),
                 up(end, 2 * line), 2};
  while (plan.layout.rooms < (ahead ? most_rooms_ahead : most_rooms_together) &&
         2 * plan.layout.rooms * plan.layout.room_bytes <= most_bytes_of_rooms) {
    plan.layout.rooms *= 2;
  }
  return plan;
}

RoundArea::RoundArea(Collectives& team, std::span<const SentBlock> sent, bool ahead)
    : RoundArea(team, plan_for(sent, ahead)) {}

RoundArea::RoundArea(Collectives& team, const Plan& plan)
    : memory_(team, plan.layout.rooms_at + plan.layout.rooms * plan.layout.room_bytes),
      rooms_(static_cast<std::size_t>(team.size())) {
  std::byte* const area = memory_.own();
  (new (area) AreaHeader)->layout = plan.layout;
  if (!plan.blocks.empty()) {
    std::memcpy(area + sizeof(AreaHeader), plan.blocks.data(),
                plan.blocks.size() * sizeof(PlacedBlock));
  }
  find_rooms(memory_.rank());
  for (std::uint64_t i = 0; i < plan.layout.rooms; ++i) new (room(memory_.rank(), i)) RoomHeader;
}

void RoundArea::find_rooms(int rank) noexcept {
  const AreaLayout& layout = header(rank).layout;
  rooms_[static_cast<std::size_t>(rank)] = {memory_.of(rank) + layout.rooms_at, layout.room_bytes,
                                            layout.rooms};
}

void RoundArea::connect() noexcept {
  for (int rank = 0; rank < memory_.size(); ++rank) find_rooms(rank);
}

std::int64_t RoundArea::bytes_of(int rank, std::size_t number) const noexcept {
  if (number >= header(rank).layout.blocks) return -1;
  return static_cast<std::int64_t>(placed(rank, number).bytes);
}

void RoundArea::fill(std::uint64_t round, std::span<const SentBlock> sent) noexcept {
  std::byte* const to = room(memory_.rank(), round);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (sent[i].bytes == 0 || (i > 0 && follows(sent[i], sent[i - 1]))) continue;
    kernels::copy(to + placed(memory_.rank(), i).at, sent[i].from, sent[i].bytes,
                  kernels::Stores::temporal);
  }
  begin(round);
}

void RoundArea::refuse(std::uint64_t round) noexcept {
  room_header(memory_.rank(), round).refused = round;
  begin(round);
}

void RoundArea::begin(std::uint64_t round) noexcept {
  // This release pairs with the acquire in has_begun(): the blocks are there.
  room_header(memory_.rank(), round).round.store(round, std::memory_order_release);
  const Rooms& own = rooms_[static_cast<std::size_t>(memory_.rank())];
  if (own.number <= 2) return;
  // The next room's lines are fetched all at once, while this round goes on, instead of one after
  // the other when they are written.
  const std::byte* next_room = room(memory_.rank(), round + 1);
  for (std::size_t at = 0; at < own.bytes; at += line) os::prefetch_for_writing(next_room + at);
}

}  // namespace ropewalk::preload
