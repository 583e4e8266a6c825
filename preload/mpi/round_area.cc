#include "round_area.hpp"

#include <cstring>
#include <new>

namespace ropewalk::preload {
namespace {

constexpr std::size_t up(std::size_t bytes, std::size_t unit) {
  return (bytes + unit - 1) / unit * unit;
}

bool follows(const SentBlock& block, const SentBlock& before) noexcept {
  return block.from == before.from && block.bytes == before.bytes;
}

}  // namespace

RoundArea::Plan RoundArea::plan_for(std::span<const SentBlock> sent) {
  Plan plan;
  std::size_t end = sizeof(RoomHeader);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (i > 0 && follows(sent[i], sent[i - 1])) {
      plan.blocks.push_back(plan.blocks.back());
      continue;
    }
    plan.blocks.push_back({end, sent[i].bytes});
    end = up(end + sent[i].bytes, sizeof(RoomHeader));
  }
  plan.header = {sent.size(), line + up(sent.size() * sizeof(PlacedBlock), line),
                 up(end, 2 * line)};
  return plan;
}

RoundArea::RoundArea(Collectives& team, std::span<const SentBlock> sent)
    : RoundArea(team, plan_for(sent)) {}

RoundArea::RoundArea(Collectives& team, const Plan& plan)
    : memory_(team, plan.header.rooms_at + 2 * plan.header.room_bytes),
      rooms_(2 * static_cast<std::size_t>(team.size())) {
  std::byte* const area = memory_.own();
  new (area) AreaHeader(plan.header);
  if (!plan.blocks.empty()) {
    std::memcpy(area + line, plan.blocks.data(), plan.blocks.size() * sizeof(PlacedBlock));
  }
  find_rooms(memory_.rank());
  for (const std::uint64_t round : {0U, 1U}) new (room(memory_.rank(), round)) RoomHeader;
}

void RoundArea::find_rooms(int rank) noexcept {
  for (const std::size_t i : {0U, 1U}) {
    rooms_[2 * static_cast<std::size_t>(rank) + i] =
        memory_.of(rank) + header(rank).rooms_at + i * header(rank).room_bytes;
  }
}

void RoundArea::connect() noexcept {
  for (int rank = 0; rank < memory_.size(); ++rank) find_rooms(rank);
}

std::int64_t RoundArea::bytes_of(int rank, std::size_t number) const noexcept {
  if (number >= header(rank).blocks) return -1;
  return static_cast<std::int64_t>(placed(rank, number).bytes);
}

void RoundArea::fill(std::uint64_t round, std::span<const SentBlock> sent) noexcept {
  std::byte* const to = room(memory_.rank(), round);
  for (std::size_t i = 0; i < sent.size(); ++i) {
    if (sent[i].bytes == 0 || (i > 0 && follows(sent[i], sent[i - 1]))) continue;
    std::memcpy(to + placed(memory_.rank(), i).at, sent[i].from, sent[i].bytes);
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
}

const std::byte* RoundArea::block(int rank, std::size_t number,
                                  std::uint64_t round) const noexcept {
  return room(rank, round) + placed(rank, number).at;
}

}  // namespace ropewalk::preload
